// H2Connection: what the pool holds of an origin that speaks HTTP/2: one session, used by many exchanges at once, on
// the loop where it was made until it ends. It looks at its own wire always, and tells the pool how many streams it may
// lend (SETTINGS) and that it is over (GOAWAY, an error, silence).
//
// Everything that exchanges, SETTINGS and windows ask for in one turn leaves in one write at its end. What cannot go on
// is told in that deferred work too: nobody is called from inside a call of his own.
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
#include "proxy/upstream/origin/origin_registry.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

class H2Connection final : public Connection, private http::H2Sink, private exec::Deferred {
 public:
  H2Connection(SessionHost& host, OriginContext& context, std::uint64_t id, net::Dialed dialed, Instant now);
  ~H2Connection() override;

  // The dial's last step: says the preface, and goes on with each readiness until the origin's SETTINGS are here, which
  // is true. Only then it is known how many streams may be lent, and that HTTP/2 is spoken at all.
  Result<bool> greet(exec::Ready ready) LOOP_ONLY;
  bool has_settings() const LOOP_ONLY { return greeted_; }
  // Its place in the pool, right before Destination::dialed().
  void take_place(std::uint32_t index, std::uint32_t generation) LOOP_ONLY;
  void on_ready(exec::Ready ready) LOOP_ONLY;

  // ---- the pool's questions ----
  pool::Kind kind() const override { return pool::Kind::h2; }
  std::uint32_t streams() const override { return streams_; }
  bool settle() override { return true; }

  // ---- for the carriers of this loop ----
  bool takes_requests() const LOOP_ONLY { return !dead_ && !certificates_replaced() && session_.accepts_requests(); }
  // The carrier joins those that are told when the connection ends. Null: the session takes no request any more, which
  // the carrier is told later.
  http::H2Stream* open(H2Carrier& carrier, const http::H2Fields& fields, bool end, bool head_request) LOOP_ONLY;
  http::H2Session& session() LOOP_ONLY { return session_; }
  void soon() LOOP_ONLY;  // there is something to send, or to tell
  // Its user is told something that it collects; pass_on() ends that when all that was read is told.
  void speaking(H2Carrier& carrier) LOOP_ONLY;
  void silent(H2Carrier& carrier) LOOP_ONLY;
  void note_reset(http::H2Error error) LOOP_ONLY;  // of a stream, by the origin
  void answered() LOOP_ONLY;                       // a response's head came
  void given_up_on(Instant asked) LOOP_ONLY;       // a stream without an answer, begun then
  void note_size(std::size_t bytes) LOOP_ONLY;     // of an answer
  // One of the last answers was more than a stream may carry ahead: the next one's window is opened with its request.
  bool large_answers() const LOOP_ONLY { return large_ != 0; }
  void tell_later(H2Carrier& carrier) LOOP_ONLY;  // that it broke
  std::string_view scheme() const { return origin_.tls != nullptr ? "https" : "http"; }
  // Did the peer say with GOAWAY that it did nothing for this stream?
  bool given_up(http::StreamId id) const LOOP_ONLY { return goaway_last_ && id > *goaway_last_; }

 private:
  void run() override LOOP_ONLY;  // exec::Deferred
  void read_some() LOOP_ONLY;
  void pass_on() LOOP_ONLY;
  void flush() LOOP_ONLY;
  void send_pulled() LOOP_ONLY;
  void look_for_the_end() LOOP_ONLY;
  void die(pool::Closed cause, const Fault& fault) LOOP_ONLY;
  void retire(pool::Closed cause) LOOP_ONLY;
  void tell_broken() LOOP_ONLY;
  Duration patience() const;
  void ask_for_life(bool hold) LOOP_ONLY;
  void on_timer();
  void arm_timer() LOOP_ONLY;

  http::H2StreamUser* on_request(http::H2Stream&, http::RequestHead&) override { return nullptr; }
  void on_refused_head(http::H2Stream&, FaultKind) override {}
  void on_settings(const http::H2PeerSettings& settings) override;
  void on_settings_ack() override { acked_ = true; }
  void on_goaway(http::StreamId last, http::H2Error error) override;
  void on_ping_ack(std::uint64_t) override {}  // any byte proves life

  SessionHost& host_;
  OriginContext& origin_;
  http::H2Session session_;
  Outbox outbox_;
  List<H2Carrier, H2CarrierTag> open_;       // with a stream
  List<H2Carrier, H2CarrierTag> broken_;     // to be told
  List<H2Carrier, H2SpeakingTag> speaking_;  // whose users collect something that has not left yet
  std::uint32_t speaking_count_ = 0;
  exec::Timer timer_;
  std::uint32_t index_ = 0, generation_ = 0;
  std::uint32_t streams_;
  std::optional<http::StreamId> goaway_last_;
  std::string why_;  // it died
  Instant last_read_;
  Instant asked_{};  // when the last unanswered PING left
  std::uint8_t large_ = 0;
  bool holding_ = false;  // after a quiet time: nothing but the PING leaves until a byte came back
  bool doubted_ = false;  // a stream was given up while nothing came: the next one waits for a sign of life
  bool greeted_ = false;  // SETTINGS came
  bool acked_ = false;    // and ours were acknowledged: the origin's first words are all here
  bool placed_ = false;   // take_place() was called
  bool proven_ = false;   // the first response came
  bool dead_ = false;
  bool retired_ = false;
};

}  // namespace carpool::proxy
