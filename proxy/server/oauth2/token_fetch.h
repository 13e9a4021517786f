// TokenFetch: one request for a token at a time, by an exchange like that of any client: the token endpoint has a pool,
// rules, metrics and lines in the access log of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exec/bound.h"
#include "exec/loop.h"
#include "proxy/config/token_url.h"
#include "proxy/exchange/client_stream.h"

namespace carpool::proxy {

class Exchange;
struct ExchangeContext;

class TokenFetch final : public ClientStream, private exec::Deferred {
 public:
  // `ended` is called in a later step than any call to this object.
  TokenFetch(const ExchangeContext& context, const ListenPoint& point, exec::Bound ended)
      : ClientStream(point), context_(context), ended_(ended) {}

  void start(const config::OAuth2& settings, const config::TokenUrl& url, std::string_view secret) LOOP_ONLY;
  void cancel() LOOP_ONLY;  // `ended` is not called

  // ---- the result, until the next start() ----
  std::uint16_t status() const { return status_; }
  std::string_view body() const { return body_; }
  // Why there is no complete answer.
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  std::string_view peer() const override { return "carpool oauth2"; }
  std::uint64_t fairness_key() const override { return 0; }
  bool carries_secret() const override { return true; }
  bool request_complete() const override LOOP_ONLY { return sent_; }
  bool send_informational(const http::ResponseHead&) override LOOP_ONLY { return true; }
  bool send_head(const http::ResponseHead& head, bool close) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields&) override LOOP_ONLY {}
  std::uint16_t send_fault(const Fault& fault, bool keep) override LOOP_ONLY;
  void send_local_answer(bool) override LOOP_ONLY {}
  void send_tunnel(const http::ResponseHead*) override LOOP_ONLY {}
  bool flush() override LOOP_ONLY { return !fault_ || status_ == 0; }
  std::size_t backlog() const override LOOP_ONLY { return 0; }
  void on_tunnel() override LOOP_ONLY {}
  void shut_write_when_sent() override LOOP_ONLY {}
  void resume() override LOOP_ONLY {}
  void on_exchange_end(AfterExchange next) override LOOP_ONLY;
  void run() override LOOP_ONLY { ended_(); }

  const ExchangeContext& context_;
  const exec::Bound ended_;
  Exchange* exchange_ = nullptr;  // in use
  bool sent_ = false;
  std::uint16_t status_ = 0;
  std::string body_;
  std::optional<Fault> fault_;
};

}  // namespace carpool::proxy
