// H2Connection: the pooled connection to an HTTP/2 origin: one session that many exchanges use concurrently. It stays
// on the loop that created it and always watches its own socket. It reports to the pool how many streams may be lent
// (SETTINGS) and when it ends (GOAWAY, an error, a timeout).
//
// All frames that exchanges, SETTINGS and windows cause in one turn are sent in one write at its end. Failures are
// reported in that deferred work too, so that no caller is called back from within its own call.
#pragma once

#include <optional>
#include <string>

#include "base/intrusive.h"
#include "exec/loop.h"
#include "proxy/http/h2/session.h"
#include "proxy/net/write_queue.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/h2/stream.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

class H2Connection final : public Connection, private http::H2Sink, private exec::Deferred {
 public:
  H2Connection(H2LoopContext& host, OriginRuntime& context, std::uint64_t id, net::Dialed dialed, Instant now);
  ~H2Connection() override;

  // Performs the last step of the dial: sends the preface, then continues on readiness. Returns true when the origin's
  // SETTINGS have arrived. Only they prove that the origin supports HTTP/2, and give the number of streams that may be
  // lent.
  Result<bool> handshake(exec::Ready ready) LOOP_ONLY;
  bool has_settings() const LOOP_ONLY { return settings_received_; }
  // Returns true if the origin announced, without an error, that it accepts no request of this connection.
  bool declined() const LOOP_ONLY { return goaway_last_ && goaway_error_ == http::H2Error::no_error && open_.empty(); }
  // Sets its entry in the pool, right before Destination::dialed().
  void assign_slot(std::uint32_t index, std::uint32_t generation) LOOP_ONLY;
  // Applies `most`, the max_streams of the settings in force.
  void limit_streams(std::uint32_t most) LOOP_ONLY;
  void on_ready(exec::Ready ready) LOOP_ONLY;

  // ---- pool::PooledConnection ----
  pool::Protocol protocol() const override { return pool::Protocol::h2; }
  std::uint32_t streams() const override { return streams_; }
  bool clean_for_reuse() override { return true; }

  // ---- for the upstream streams of this loop ----
  bool takes_requests() const LOOP_ONLY { return works() && !certificates_replaced() && session_.accepts_requests(); }
  // Opens a stream and registers the upstream stream, which is notified when the connection ends. Returns nullptr if
  // the session accepts no more requests, the origin no more streams, or the certificates were replaced; the upstream
  // stream is then notified later.
  http::H2Stream* open(H2UpstreamStream& upstream_stream, const http::H2Fields& fields, bool end,
                       bool head_request) LOOP_ONLY;
  void stream_left() LOOP_ONLY { --open_count_; }  // an upstream stream has no stream any more
  http::H2Session& session() LOOP_ONLY { return session_; }
  std::uint32_t max_header_list() const LOOP_ONLY { return max_header_list_; }  // limit of a request's head
  void schedule_flush() LOOP_ONLY;  // call when there is something to send or to report
  // Marks the stream whose handler collects output. flush_to_handler() ends the delivery after the whole read was
  // processed.
  void begin_delivery(H2UpstreamStream& upstream_stream) LOOP_ONLY;
  void end_delivery(H2UpstreamStream& upstream_stream) LOOP_ONLY;
  void note_reset(http::H2Error error) LOOP_ONLY;  // a stream was reset: by the origin, or because of its response
  void answered() LOOP_ONLY;                       // a response head was received
  bool has_answered() const LOOP_ONLY { return first_response_seen_; }
  void on_stream_abandoned(Instant asked) LOOP_ONLY;  // a stream begun at `asked` was abandoned without a response
  void note_size(std::size_t bytes) LOOP_ONLY;        // bytes of a response
  // Returns true if a recent response exceeded the initial window of a stream. The window of the next stream is then
  // widened together with its request.
  bool recent_large_responses() const LOOP_ONLY { return large_ != 0; }
  void schedule_failure_report(H2UpstreamStream& upstream_stream) LOOP_ONLY;  // reports the failure of the stream later
  std::string_view scheme() const { return origin_.tls != nullptr ? "https" : "http"; }
  // Returns true if the peer's GOAWAY excluded this stream from processing.
  bool excluded_by_goaway(http::StreamId id) const LOOP_ONLY { return goaway_last_ && id > *goaway_last_; }
  // Returns true if the peer's GOAWAY requires HTTP/1.1.
  bool requires_h1() const LOOP_ONLY { return goaway_error_ == http::H2Error::http_1_1_required; }

 private:
  void update_streams() LOOP_ONLY;
  bool works() const LOOP_ONLY { return !dead_ && !write_failed_; }
  void run() override LOOP_ONLY;  // exec::Deferred
  void read_some() LOOP_ONLY;
  bool receive(std::string_view bytes) LOOP_ONLY;
  void flush_to_handler() LOOP_ONLY;
  void flush() LOOP_ONLY;
  void send_pulled() LOOP_ONLY;
  void on_write_failed() LOOP_ONLY;
  void pass_excess_on() LOOP_ONLY;
  void fail_if_over() LOOP_ONLY;
  std::string end_reason(std::string_view otherwise) const LOOP_ONLY;
  void fail(pool::CloseCause cause, const Fault& fault) LOOP_ONLY;
  void retire(pool::CloseCause cause) LOOP_ONLY;
  void report_failures() LOOP_ONLY;
  Duration ping_timeout() const;
  bool may_ping() const LOOP_ONLY;
  std::int64_t delivered() LOOP_ONLY;
  bool ping_is_on_its_way() LOOP_ONLY;
  void send_liveness_ping(bool hold) LOOP_ONLY;
  void on_timer();
  void arm_timer() LOOP_ONLY;

  http::H2StreamUser* on_request(http::H2Stream&, http::RequestHead&) override { return nullptr; }
  void on_refused_head(http::H2Stream&, FaultKind) override {}
  void on_settings(const http::H2PeerSettings& settings) override;
  void on_settings_ack() override { acked_ = true; }
  void on_goaway(http::StreamId last, http::H2Error error) override;
  void on_ping_ack(std::uint64_t) override {}  // any byte proves liveness

  H2LoopContext& host_;
  OriginRuntime& origin_;
  http::H2Session session_;
  WriteQueue write_queue_;
  List<H2UpstreamStream, H2OpenTag> open_;              // upstream streams that have a stream
  List<H2UpstreamStream, H2OpenTag> broken_;            // upstream streams to be notified
  List<H2UpstreamStream, H2DeliveringTag> delivering_;  // upstream streams whose handlers hold unflushed output
  std::uint32_t delivering_count_ = 0;
  exec::Timer timer_;
  std::uint32_t index_ = 0, generation_ = 0;
  std::uint32_t max_streams_, peer_streams_ = UINT32_MAX;  // limits of the settings and of the origin
  std::uint32_t streams_;                                  // the smaller one
  std::uint32_t max_header_list_ = UINT32_MAX;
  std::uint32_t open_count_ = 0;  // of open_
  std::optional<http::StreamId> goaway_last_;
  http::H2Error goaway_error_ = http::H2Error::no_error;  // that a GOAWAY named
  std::string failure_reason_;                            // reason of the failure
  Instant last_read_;
  Instant ping_sent_at_{};  // when the unacknowledged PING was sent
  Instant last_ping_{};
  std::int64_t ping_begins_ = 0;  // bytes of output before the PING
  std::int64_t delivered_ = 0;    // as of the last time that the PING was looked for
  std::uint32_t pings_ = 0;       // sent since the last frame of a response
  std::uint8_t large_ = 0;
  bool awaiting_ping_ack_ = false;  // only the PING is sent until a byte is received
  bool suspect_ = false;  // a stream was abandoned while nothing was received; the next request waits for input
  bool settings_received_ = false;  // SETTINGS were received
  bool acked_ = false;              // our SETTINGS were acknowledged, so the origin's initial frames are complete
  bool in_pool_ = false;            // assign_slot() was called
  bool first_response_seen_ = false;
  bool write_failed_ = false;  // what the origin sent before is still read
  bool dead_ = false;
  bool retired_ = false;
};

}  // namespace carpool::proxy
