// OwnRequest: sends one request of carpool's own at a time, through an exchange like any client's. Its origin therefore
// has a pool, rules, metrics and lines in the access log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exec/bound.h"
#include "exec/loop.h"
#include "proxy/exchange/client_stream.h"

namespace carpool::proxy {

class Exchange;
struct ExchangeContext;

// OwnRequestKind: the properties that all requests of one OwnRequest share. The texts must live as long as the program.
struct OwnRequestKind {
  std::string_view peer;      // shown as the client in the log
  std::string_view endpoint;  // for faults, such as "the token endpoint"
  std::size_t max_response = 0;
  bool secret = false;  // see ClientStream::carries_secret()
};

class OwnRequest final : public ClientStream, private exec::Deferred {
 public:
  // `ended` is called in a later step, never within a call to this object.
  OwnRequest(const ExchangeContext& context, const ListenPoint& point, const OwnRequestKind& kind, exec::Bound ended)
      : ClientStream(point), context_(context), kind_(kind), ended_(ended) {}

  // Returns the head to fill, in the absolute form. send() must follow.
  http::RequestHead& prepare() LOOP_ONLY;
  // The body is `first`, then `rest`. `first` is sent within the call; `rest` must live until the request ends.
  void send(std::string_view first, std::string_view rest = {}) LOOP_ONLY;
  void cancel() LOOP_ONLY;  // `ended` is not called

  // ---- the result, until the next prepare() ----
  std::uint16_t status() const { return status_; }
  std::string_view body() const { return body_; }
  std::optional<Duration> retry_after() const { return retry_after_; }
  // Returns why there is no complete response.
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  std::string_view peer() const override { return kind_.peer; }
  std::uint64_t fairness_key() const override { return 0; }
  bool carries_secret() const override { return kind_.secret; }
  bool traced() const override { return false; }
  bool request_complete() const override LOOP_ONLY { return sent_; }
  bool send_informational(const http::ResponseHead&) override LOOP_ONLY { return true; }
  bool send_head(const http::ResponseHead& head, bool close) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields&) override LOOP_ONLY {}
  std::uint16_t send_fault(const Fault& fault, bool keep) override LOOP_ONLY;
  void send_local_reply(bool) override LOOP_ONLY {}
  void send_tunnel(const http::ResponseHead*) override LOOP_ONLY {}
  bool flush() override LOOP_ONLY { return !fault_ || status_ == 0; }
  std::size_t backlog() const override LOOP_ONLY { return 0; }
  std::uint64_t accepted() const override LOOP_ONLY { return 0; }
  void on_tunnel() override LOOP_ONLY {}
  void shut_write_when_sent() override LOOP_ONLY {}
  void resume() override LOOP_ONLY;
  void on_exchange_end(AfterExchange next) override LOOP_ONLY;
  void run() override LOOP_ONLY;
  void feed() LOOP_ONLY;

  const ExchangeContext& context_;
  const OwnRequestKind kind_;
  const exec::Bound ended_;
  Exchange* exchange_ = nullptr;  // in use during a request
  bool sent_ = false;
  std::string_view rest_;  // unsent part of the body
  std::uint16_t status_ = 0;
  std::string body_;
  std::optional<Duration> retry_after_;
  std::optional<Fault> fault_;
};

}  // namespace carpool::proxy
