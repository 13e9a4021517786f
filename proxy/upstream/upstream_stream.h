// UpstreamStream: the interface of an Exchange to its borrowed connection, for one request and its response: an
// HTTP/1.1 connection, a stream of an HTTP/2 session, or a stream of a session of another loop.
//
// send_*() collect output; flush() sends it. Neither calls the UpstreamStreamHandler: a failure is reported by deferred
// work of the same turn. The last call is finish() or abandon().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/fault.h"
#include "exec/role.h"
#include "pool/destination/lease.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"
#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy::net {
class Transport;
struct IoResult;
}  // namespace carpool::proxy::net

namespace carpool::proxy {

// StreamFailure: why a response is missing or incomplete, and how far the request was sent.
struct StreamFailure {
  Fault fault{FaultKind::connection_terminated, Side::upstream};
  bool connection_ended = false;           // by EOF, reset or a failed write; not by a malformed response
  bool any_byte_sent = true;               // a byte of the request was sent
  bool any_byte_received = false;          // a byte of a response was received, 1xx included
  std::optional<RetryReason> unprocessed;  // declared by the origin: not_sent, goaway, refused_stream
  bool never_answered = false;             // HTTP/2: the session has received no response yet
  bool stream_reset = false;               // the origin reset the stream of a sound connection
  bool ask_h1 = false;  // the origin requires HTTP/1.1 (HTTP_1_1_REQUIRED), for an unprocessed request

  // Returns how the attempt ended. `was_idle`: see AttemptValues.
  AttemptResult attempt_result(bool was_idle) const {
    if (any_byte_received) return AttemptResult::answered;
    if (unprocessed == RetryReason::goaway) return AttemptResult::goaway;
    if (unprocessed == RetryReason::refused_stream) return AttemptResult::refused_stream;
    if (unprocessed || (connection_ended && !any_byte_sent)) return AttemptResult::not_sent;
    if (!connection_ended) return AttemptResult::violated;
    return was_idle && !never_answered ? AttemptResult::closed_idle : AttemptResult::closed_new;
  }
  // Like attempt_result(was_idle), with the protocols and retry conditions of the origin. `on_reset`: request.retry_on
  // has "reset".
  AttemptResult attempt_result(bool was_idle, bool allows_h1, bool on_reset) const;
};

// AttemptState: returned by calls that may end the attempt. After `over` the upstream stream may already serve another
// attempt, so the caller must not access it.
enum class [[nodiscard]] AttemptState : std::uint8_t{alive, over};

// UpstreamStreamHandler: the interface of an upstream stream to its exchange. A call that returns an AttemptState may
// finish or abandon the upstream stream and begin another attempt on it. After `over` the stream must not access its
// members.
class UpstreamStreamHandler : public http::BodySink {
 public:
  virtual bool wants_response() const LOOP_ONLY = 0;  // the client's buffer has room for more of the response
  virtual std::size_t writable_bytes() const LOOP_ONLY { return SIZE_MAX; }  // if wants_response(): the room, never 0
  // Returns true if the next bytes of the body may go to the client without passing on_body().
  virtual bool splices_body() const LOOP_ONLY { return false; }
  // Moves at most `most` of them. `io`: the result of reading `from`, as of Transport::read().
  virtual AttemptState splice_body(net::Transport& /*from*/, std::size_t /*max_bytes*/,
                                   net::IoResult& /*io*/) LOOP_ONLY {
    CARPOOL_ASSERT(false);
  }
  virtual bool may_buffer_more() const LOOP_ONLY { return true; }  // the stream's window may exceed its minimum
  virtual AttemptState on_response_head() LOOP_ONLY = 0;           // the head is parsed, also that of a 1xx
  virtual AttemptState on_read_complete() LOOP_ONLY = 0;  // all bytes of a read are parsed; the handler flushes
  virtual AttemptState on_response_end() LOOP_ONLY = 0;   // the response is complete; returns `over`
  virtual AttemptState on_failure(StreamFailure failure) LOOP_ONLY = 0;   // returns `over`
  virtual AttemptState on_writable() LOOP_ONLY = 0;                       // backlog() decreased
  virtual AttemptState on_switched(std::string_view rest) LOOP_ONLY = 0;  // after 101: on_body() passes raw bytes
  virtual AttemptState on_tunnel_eof() LOOP_ONLY = 0;                     // the origin sent FIN in a tunnel

 protected:
  ~UpstreamStreamHandler() = default;
};

class UpstreamStream {
 public:
  // Returns false if the connection ended before its first use, or if its certificates were replaced.
  virtual bool usable() LOOP_ONLY = 0;
  // After usable() returned false: returns true if the origin sent bytes before the request. Reads them.
  virtual bool sent_before_request() LOOP_ONLY { return false; }
  // ---- the request; views must stay valid until flush() ----
  virtual void send_head(const http::RequestHead& head, const http::ForwardRules& rules) LOOP_ONLY = 0;
  virtual void send_body(std::string_view bytes) LOOP_ONLY = 0;
  virtual void send_end(const http::Fields& trailers) LOOP_ONLY = 0;
  virtual bool flush() LOOP_ONLY = 0;                 // returns true if there was output
  virtual std::size_t backlog() const LOOP_ONLY = 0;  // unsent bytes; from kHighWatermark on the client is not read
  // ---- the response ----
  virtual AttemptState resume_reading() LOOP_ONLY = 0;  // call when wants_response() became true
  // Returns true if the origin sent the first bytes of its response before it could receive any of the request.
  virtual bool precedes_request() const LOOP_ONLY { return false; }
  // ---- the end: returns the cause if the connection must not be reused, and the caller ends the lease accordingly. An
  // upstream stream that needs the connection longer takes the lease and ends it itself. ----
  virtual std::optional<pool::CloseCause> finish(pool::Lease& lease) LOOP_ONLY = 0;  // after a complete response
  // Ends an unfinished attempt. Returns `cause` if the connection cannot be reused.
  virtual std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) LOOP_ONLY = 0;

  // ---- tunnels: on HTTP/1.1 connections only ----
  virtual void open_tunnel() LOOP_ONLY { CARPOOL_ASSERT(false); }           // CONNECT: raw bytes from the start
  virtual void shut_write_when_sent() LOOP_ONLY { CARPOOL_ASSERT(false); }  // call when the client has sent its FIN
  virtual bool write_closed() const LOOP_ONLY { return false; }             // the origin no longer reads

 protected:
  ~UpstreamStream() = default;
};

}  // namespace carpool::proxy
