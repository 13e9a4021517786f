// H1UpstreamStream: one request and its response on a borrowed HTTP/1.1 connection. Belongs to an exchange and is
// reused for consecutive connections; owns no memory while idle.
#pragma once

#include "exec/loop.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/batch_lease.h"
#include "proxy/net/write_queue.h"
#include "proxy/upstream/connection_events.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy::net {
struct ReadOutcome;
}

namespace carpool::proxy {

class Connection;

class H1UpstreamStream final : public UpstreamStream, private ConnectionEvents, private exec::Deferred {
 public:
  H1UpstreamStream(H2LoopContext& host, UpstreamStreamHandler& user, http::ResponseHead& response);

  // `upgrade`: the origin may respond with 101. `bare_lf`: lines of the response head may end in LF alone.
  void begin(Connection& connection, std::string_view method, bool upgrade, bool bare_lf = false) LOOP_ONLY;

  bool usable() override LOOP_ONLY;
  bool sent_before_request() override LOOP_ONLY;
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY;
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return write_queue_.size(); }
  AttemptState resume_reading() override LOOP_ONLY;
  bool precedes_request() const override LOOP_ONLY;
  std::optional<pool::CloseCause> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) override LOOP_ONLY;
  void open_tunnel() override LOOP_ONLY;
  void shut_write_when_sent() override LOOP_ONLY;
  bool write_closed() const override LOOP_ONLY { return attempt_.write_failed; }

 private:
  void on_upstream_ready() override LOOP_ONLY;
  void run() override LOOP_ONLY;  // exec::Deferred: continues reading in the next turn
  template <class Wants>
  net::ReadOutcome read(std::size_t& budget, Wants wants) LOOP_ONLY;
  net::ReadOutcome read_once(std::size_t& budget) LOOP_ONLY;
  template <class Wants>
  net::ReadOutcome read_or_splice(std::size_t& budget, Wants wants) LOOP_ONLY;
  std::size_t spliceable() const LOOP_ONLY;
  net::ReadOutcome splice(std::size_t& budget) LOOP_ONLY;
  AttemptState on_spliced(std::size_t bytes) LOOP_ONLY;
  AttemptState on_read(std::string_view bytes) LOOP_ONLY;
  net::ReadOutcome exhausted() LOOP_ONLY;
  AttemptState read_response() LOOP_ONLY;
  AttemptState read_tunnel() LOOP_ONLY;
  AttemptState feed(std::string_view bytes) LOOP_ONLY;
  AttemptState on_end(const net::IoResult& io) LOOP_ONLY;
  AttemptState fail(Fault fault, bool connection_ended) LOOP_ONLY;
  AttemptState fail_malformed(Fault fault) LOOP_ONLY;
  void on_write_failed() LOOP_ONLY;
  void pass_end_on() LOOP_ONLY;
  bool nothing_follows(const net::ReadOutcome& outcome) LOOP_ONLY;
  AttemptState fail_unread() LOOP_ONLY;
  void leave() LOOP_ONLY;
  net::Transport& transport() const;
  BatchLease& out() LOOP_ONLY;  // sent by the next flush()

  H2LoopContext& host_;
  UpstreamStreamHandler& user_;
  http::ResponseHead& response_;
  http::ResponseReader reader_;
  WriteQueue write_queue_;            // bytes that the origin's socket has not accepted yet
  Connection* connection_ = nullptr;  // from begin() to finish() or abandon()
  BatchLease out_;                    // from the first send_*() to flush(), or to the end of the attempt
  // Reading: what the origin sends next. `head`: the final head, or a 1xx before it. `ended`: the origin of a tunnel
  // sent FIN.
  enum class Reading : std::uint8_t { head, body, tunnel, ended };
  // TunnelEnd: the FIN of a tunnel's client. `waits`: for the bytes before it.
  enum class TunnelEnd : std::uint8_t { open, waits, passed_on };
  // Attempt: reconstructed by begin(), so that no state of one attempt leaks into the next.
  struct Attempt {
    http::Framing framing = http::Framing::none;
    std::uint64_t body_left = 0;  // with Framing::length: bytes of the body that send_body() has not got yet
    Reading reading = Reading::head;
    TunnelEnd client_end = TunnelEnd::open;
    bool end_sent = false;      // send_end() was called
    bool leftover = false;      // bytes after the response: the connection is not clean
    bool write_failed = false;  // the origin stopped reading
    std::size_t last_read = 0;  // tunnel: bytes of the last read or splice
    bool tunnel() const { return reading >= Reading::tunnel; }
  };
  Attempt attempt_;
};

}  // namespace carpool::proxy
