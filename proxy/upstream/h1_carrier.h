// H1Carrier: one request and its response on a borrowed HTTP/1.1 connection. Belongs to an exchange and serves one
// connection after the other; at rest it owns no memory.
#pragma once

#include "exec/loop.h"
#include "proxy/http/h1_codec.h"
#include "proxy/outbox.h"
#include "proxy/upstream/carrier.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

class Worker;

// What one connection may read in one turn before the others get theirs.
inline constexpr std::size_t kTurnBytes = std::size_t{256} * 1024;

class H1Carrier final : public Carrier, private UpstreamUser, private exec::Deferred {
 public:
  H1Carrier(Worker& worker, CarrierUser& user, http::ResponseHead& response);

  // `upgrade`: the request asks for 101.
  void begin(Connection& connection, std::string_view method, bool upgrade) LOOP_ONLY;

  bool usable() override LOOP_ONLY;
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return outbox_.size(); }
  void read_on() override LOOP_ONLY;
  std::optional<pool::Closed> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::Closed> abandon(pool::Closed cause, pool::Lease& lease) override LOOP_ONLY;
  void open_tunnel() override LOOP_ONLY;
  void shut_write_when_sent() override LOOP_ONLY;
  bool deaf() const override LOOP_ONLY { return write_failed_; }

 private:
  void on_upstream_ready() override LOOP_ONLY;
  void run() override LOOP_ONLY;  // exec::Deferred: read on in the next turn
  void read_response() LOOP_ONLY;
  void read_tunnel() LOOP_ONLY;
  bool feed(std::string_view bytes) LOOP_ONLY;
  void on_end(const net::IoResult& io) LOOP_ONLY;
  void broken(Fault fault, bool connection_ended) LOOP_ONLY;
  void on_write_failed() LOOP_ONLY;
  void leave() LOOP_ONLY;
  net::Transport& transport() const { return connection_->transport(); }

  Worker& worker_;
  CarrierUser& user_;
  http::ResponseHead& response_;
  http::ResponseReader reader_;
  Outbox outbox_;                     // what the origin's socket would not take yet
  Connection* connection_ = nullptr;  // from begin() to finish() or abandon()
  http::Framing framing_ = http::Framing::none;
  bool asked_whole_ = false;   // send_end()
  bool head_done_ = false;     // final response head seen
  bool leftover_ = false;      // bytes behind the response: the wire is not clean
  bool write_failed_ = false;  // the origin does not read any more
  bool tunnel_ = false;
  bool eof_ = false;  // tunnel: the origin said FIN
  bool shut_when_sent_ = false;
};

}  // namespace carpool::proxy
