// H2Session: parses HTTP/2 bytes into messages and back, for either role (RFC 9113); no I/O. Wraps nghttp2, which does
// framing, HPACK, windows and stream states; H2HeadReader validates messages, H2Guard limits abuse.
//
// receive() calls the sinks. Commands are queued and pull() turns them into bytes: once per turn of the loop, however
// many frames those are. Only consume() returns received body bytes to the peer's window; bytes to send wait in the
// stream's queue for the peer's window. Backpressure needs nothing else. Streams are served round robin.
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

// H2Sink: receives the events of the session as a whole.
class H2Sink {
 public:
  // Servers: a request arrived; its head may be swapped out. Returns the user of the stream, or nullptr if the request
  // was answered or reset during the call, or if set_user() follows later or never.
  virtual H2StreamUser* on_request(H2Stream& stream, RequestHead& head) = 0;
  // Servers: a head over a limit (431, 414, 501); the callee must answer or reset the stream.
  virtual void on_refused_head(H2Stream& stream, FaultKind kind) = 0;
  // Servers: a request whose head violates a rule. Its stream is reset already.
  virtual void on_malformed_head(const char* /*violation*/) {}
  virtual void on_stream_refused() {}  // servers: a stream beyond max_streams is reset (REFUSED_STREAM)
  virtual void on_settings(const H2PeerSettings& settings) = 0;
  virtual void on_settings_ack() {}  // the peer processed our SETTINGS: everything it sent before that has arrived
  // Streams above `last` are closed with refused_stream afterwards.
  virtual void on_goaway(StreamId last, H2Error error) = 0;
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
  // After a Fault nothing more can be read: pull() the remaining output, then close.
  Status receive(std::string_view bytes, Instant now);
  bool receiving() const;  // returns true within receive()
  // Must not be called from within receive(). Appends frames to `out` until nothing can be sent now, or `out` has at
  // least `most` bytes. Returns false if the session failed and the connection must be closed. Users get on_sent() at
  // the end.
  bool pull(std::string& out, std::size_t most, Instant now);
  bool wants_pull() const;  // returns true if there is something to send
  // Returns true if neither side has anything more to send: close the connection.
  bool over() const;

  // ---- messages ----
  // Clients: opens a stream. Returns a Fault if the session accepts none any more; no byte of the request was sent
  // then.
  Result<H2Stream*> request(const H2Fields& fields, H2StreamUser& user, bool end, bool head_request);
  // Servers. `end`: no body follows.
  void inform(H2Stream& stream, const H2Fields& fields);  // 1xx; dropped if the library has no memory for it
  // Resets the stream (INTERNAL_ERROR) if more heads wait than H2Options::memory admits: the peer does not read them.
  void respond(H2Stream& stream, const H2Fields& fields, bool end);
  void body(H2Stream& stream, std::string_view bytes);
  void end(H2Stream& stream);
  void end(H2Stream& stream, const Fields& trailers);
  // Detaches the owner. Servers: queued data is still sent and further input is discarded; if the response ends before
  // its request did, a reset with NO_ERROR follows. Clients: only if both have ended.
  void leave(H2Stream& stream);
  void reset(H2Stream& stream, H2Error error);  // detaches the owner, too
  // Servers: like leave(), for a truncated response: a reset follows the queued data.
  void cut(H2Stream& stream, H2Error error);
  // Servers: resets the streams without an owner whose data, or whose end, waits for a window.
  void reset_detached(H2Error error);
  void consume(H2Stream& stream, std::size_t bytes);
  // Clients: raises the stream's receive window to `window` if that is larger. May be called right after request(); the
  // update is then sent in the same write.
  void widen(H2Stream& stream, std::uint32_t window);

  // ---- connection ----
  void ping(std::uint64_t payload);
  void announce_shutdown();    // GOAWAY that rejects nothing yet
  void goaway(H2Error error);  // accepts no new streams from now on; open ones continue
  // Ends the session immediately because the peer is late or idle.
  void terminate(H2Error error, H2Abuse abuse);
  bool accepts_requests() const;  // clients: returns true if request() may be called
  // Clients: returns true if every stream identifier was used (RFC 9113 §5.1.1).
  bool out_of_streams() const;
  void skip_streams(StreamId next);  // clients: the next stream has this identifier; for tests of the last one

  Instant head_began() const;                      // of the incomplete header block; kNever: none is
  bool window_open(const H2Stream& stream) const;  // the peer's window of this stream admits bytes
  std::size_t streams() const;                     // number of open streams of both sides
  std::size_t backlog() const;                     // bytes queued on all streams
  std::uint64_t messages_framed() const;           // bytes of heads and bodies that went into frames so far
  std::size_t library_memory() const;              // bytes
  void release_memory();                           // that is kept for reuse; called when the session is idle
  H2Abuse abuse() const;
  // Returns the connection error (RFC 9113 §5.4.1) with which this side ended the session because of the bytes that it
  // received, as its GOAWAY names it; empty: it did not.
  const std::string& connection_error() const;
  H2PeerSettings peer() const;

 private:
  H2Impl& change();
  std::unique_ptr<H2Impl> impl_;
};

}  // namespace carpool::proxy::http
