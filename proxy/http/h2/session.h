// HTTP/2 bytes in, messages out, for either side (RFC 9113); no I/O. The door to nghttp2, which does framing, HPACK,
// windows and the states of streams; what a message may be is h2_head's business, what a peer may do h2_guard's.
//
// receive() calls the sinks; whatever they command is queued, and pull() turns it into bytes: once per turn, however
// many frames that are. Received body bytes are given back to the peer's window by consume() alone, sent ones wait in
// the stream's queue for the peer's window: backpressure needs nothing else. Streams are served in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/http/h2/fields.h"
#include "proxy/http/h2/stream.h"
#include "proxy/http/h2/types.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// What concerns the session as a whole.
class H2Sink {
 public:
  // Servers: a request is here. The head may be swapped out. Returns who hears of the stream from now on; nullptr: it
  // was answered or reset in the call, or nobody will (set_user() later).
  virtual H2StreamUser* on_request(H2Stream& stream, RequestHead& head) = 0;
  // Servers: a head over a limit (431, 414); answer or reset it.
  virtual void on_refused_head(H2Stream& stream, FaultKind kind) = 0;
  virtual void on_settings(const H2PeerSettings& settings) = 0;
  virtual void on_settings_ack() {}  // of ours: whatever the peer said before it has come
  virtual void on_goaway(StreamId last,
                         H2Error error) = 0;  // streams above `last` are closed with refused_stream first
  virtual void on_ping_ack(std::uint64_t payload) = 0;

 protected:
  ~H2Sink() = default;
};

struct H2Impl;

class H2Session {
 public:
  H2Session(H2Role role, const H2Options& options, H2Sink& sink);
  ~H2Session();
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  // ---- bytes ----
  // A Fault: nothing more can be read; pull() what is left to say, then close.
  Status receive(std::string_view bytes, Instant now);
  // Appends frames to `out` until nothing is left to say now, or `out` has `most` bytes or more. False: the session
  // failed; close. Users hear on_sent() at its end.
  bool pull(std::string& out, std::size_t most, Instant now);
  bool wants_pull() const;  // is there something to say?
  // Neither side has more to say: close the connection.
  bool over() const;

  // ---- messages ----
  // Clients: a new stream; Fault: the session takes none any more (refused before a byte was sent).
  Result<H2Stream*> request(const H2Fields& fields, H2StreamUser& user, bool end, bool head_request);
  // Servers. `end`: no body follows.
  void inform(H2Stream& stream, const H2Fields& fields);  // 1xx
  void respond(H2Stream& stream, const H2Fields& fields, bool end);
  void body(H2Stream& stream, std::string_view bytes);
  void end(H2Stream& stream);
  void end(H2Stream& stream, const Fields& trailers);
  // The owner forgets it: what is queued goes out, what still comes is thrown away. An answer that ended before its
  // request did closes the stream by NO_ERROR behind it.
  void leave(H2Stream& stream);
  void reset(H2Stream& stream, H2Error error);  // and its owner forgets it
  // Servers: as leave(), of an answer that broke off: the reset follows what is queued.
  void cut(H2Stream& stream, H2Error error);
  void consume(H2Stream& stream, std::size_t bytes);
  // Clients: so much may the peer send ahead on this stream, if that is more than it may now; also right behind
  // request(), in whose write it leaves.
  void widen(H2Stream& stream, std::uint32_t window);

  // ---- the connection ----
  void ping(std::uint64_t payload);
  void announce_shutdown();    // GOAWAY that refuses nothing yet
  void goaway(H2Error error);  // no new streams; those that are open go on
  // Ends the session at once for what the peer does.
  void terminate(H2Error error, H2Abuse abuse);
  bool accepts_requests() const;  // clients: may request() be called?

  bool in_head() const;                // a header block began and is not yet complete
  std::size_t streams() const;         // open, of both sides
  std::size_t backlog() const;         // queued on all streams
  std::size_t library_memory() const;  // bytes
  void rest();                         // nothing happens now: memory kept for reuse is given back
  H2Abuse abuse() const;
  H2PeerSettings peer() const;
  std::uint32_t resets_seen() const;  // RST_STREAM frames of the peer so far

 private:
  std::unique_ptr<H2Impl> impl_;
};

}  // namespace carpool::proxy::http
