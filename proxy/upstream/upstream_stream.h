// UpstreamStream: the interface of an Exchange to its borrowed connection, for one request and its response, over any
// protocol: HTTP/1.1 (the whole connection), a stream of an HTTP/2 session, or a stream of a session of another loop.
//
// Output is collected and sent by flush(). Nothing of an UpstreamStreamHandler is called from inside send_*()
// and flush(): what fails there is told in this turn's deferred work. finish() or abandon() is the last call.
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
#include "proxy/http/h1/codec.h"
#include "proxy/http/message.h"
#include "proxy/upstream/retry_policy.h"

namespace carpool::proxy {

// Why a response will not come, or not whole; and what is known of the request's fate.
struct StreamFailure {
  Fault fault{FaultKind::connection_terminated, Side::upstream};
  bool connection_ended = false;           // EOF, reset, failed write; not: a malformed answer
  bool any_byte_sent = true;               // of the request
  bool any_byte_back = false;              // of a response, 1xx included
  std::optional<RetryReason> unprocessed;  // the origin said itself that it did nothing (goaway, refused_stream)
  bool ask_h1 = false;                     // and that it wants HTTP/1.1 instead

  // Describes the failed attempt for the retry policy; `reused`: the connection had served before.
  Attempt attempt(bool reused) const {
    Attempt ended;
    ended.reused = reused;
    ended.any_byte_sent = any_byte_sent;
    ended.any_byte_back = any_byte_back;
    ended.connection_ended = connection_ended;
    ended.unprocessed = unprocessed;
    return ended;
  }
};

// Tells the caller of a call inside which an attempt may end whether that attempt still lives. After `over` the
// upstream stream may serve another attempt already: the caller must not look at it.
enum class [[nodiscard]] AttemptState : std::uint8_t{alive, over};

// The exchange, as its upstream stream knows it. The upstream stream may be finished or abandoned from inside every
// call that returns an AttemptState, and begun anew from inside it: after `over` an upstream stream touches nothing of
// itself.
class UpstreamStreamHandler : public http::BodySink {
 public:
  virtual bool wants_response() const LOOP_ONLY = 0;  // the client has room for more of the response
  virtual std::size_t writable_bytes() const LOOP_ONLY {
    return SIZE_MAX;
  }                                                                // then: for so much at once, and never none
  virtual bool may_buffer_more() const LOOP_ONLY { return true; }  // the origin may send more than the least ahead
  virtual AttemptState on_response_head() LOOP_ONLY = 0;           // it is in the upstream stream's head; 1xx too
  virtual AttemptState on_read_complete() LOOP_ONLY = 0;           // what came at once was told: pass it on
  virtual AttemptState on_response_end() LOOP_ONLY = 0;            // whole; returns `over`
  virtual AttemptState on_failure(StreamFailure failure) LOOP_ONLY = 0;   // returns `over`
  virtual AttemptState on_writable() LOOP_ONLY = 0;                       // backlog() fell
  virtual AttemptState on_switched(std::string_view rest) LOOP_ONLY = 0;  // 101: on_body() brings bare bytes from here
  virtual AttemptState on_tunnel_eof() LOOP_ONLY = 0;                     // the origin's FIN in a tunnel

 protected:
  ~UpstreamStreamHandler() = default;
};

class UpstreamStream {
 public:
  // False: the connection ended before it was used.
  virtual bool usable() LOOP_ONLY = 0;
  // ---- the request; views live until flush() ----
  virtual void send_head(const http::RequestHead& head, const http::ForwardRules& rules) LOOP_ONLY = 0;
  virtual void send_body(std::string_view bytes) LOOP_ONLY = 0;
  virtual void send_end(const http::Fields& trailers) LOOP_ONLY = 0;
  virtual bool flush() LOOP_ONLY = 0;                 // true: something was there to be sent
  virtual std::size_t backlog() const LOOP_ONLY = 0;  // bytes of it that wait here; kHighWatermark pauses the client
  // ---- the response ----
  virtual AttemptState resume_reading() LOOP_ONLY = 0;  // wants_response() turned true
  // ---- the end: why the connection must not be used again, if it must not; the lease ends accordingly. An upstream
  // stream that needs the connection a little longer keeps the lease and ends it itself. ----
  virtual std::optional<pool::CloseCause> finish(pool::Lease& lease) LOOP_ONLY = 0;  // over, and the response was whole
  // The exchange gives up; `cause` tells why, for a connection that cannot be used after that.
  virtual std::optional<pool::CloseCause> abandon(pool::CloseCause cause, pool::Lease& lease) LOOP_ONLY = 0;

  // ---- tunnels: on a connection of HTTP/1.1 only ----
  virtual void open_tunnel() LOOP_ONLY { CARPOOL_ASSERT(false); }           // CONNECT: bare bytes from the start
  virtual void shut_write_when_sent() LOOP_ONLY { CARPOOL_ASSERT(false); }  // the client said its last word
  virtual bool write_closed() const LOOP_ONLY { return false; }             // the origin does not read any more

 protected:
  ~UpstreamStream() = default;
};

}  // namespace carpool::proxy
