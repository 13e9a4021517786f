// ClientStream: who asked, as an Exchange knows it: the client of an HTTP/1.1 connection, or one stream of an HTTP/2
// one. The exchange tells the answer as messages; what they look like on the wire is the client stream's own affair.
//
// An answer is either ours (send_fault, send_local_answer), or an origin's (any number of send_informational, then
// send_head, send_body.., send_end), or a tunnel (send_tunnel, then send_body.. as bare bytes). What is told is
// collected and leaves with flush(). The end comes once, last, as on_exchange_end().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/fault.h"
#include "exec/role.h"
#include "pool/destination/lease.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

struct OriginRuntime;

// How the client stream's wire goes on after an exchange.
enum class AfterExchange : std::uint8_t {
  keep,    // the next request may come
  close,   // everything was said, but no more can be: close gracefully (a stream: nothing but its own rest is cut off)
  cut,     // the response broke off: the client gets what came, and must be able to tell
  gone,    // the client's socket failed, or it gave the request up
  spoilt,  // as cut, of a response that breaks the protocol's rules: no end may look orderly
};

class ClientStream {
 public:
  const ListenPoint& listener() const { return listener_; }
  const config::Listen& listen() const { return listener_.settings(); }
  virtual std::string_view peer() const = 0;  // for the log
  virtual int socket() const { return -1; }   // to ask the system who it is; -1: there is none of its own
  virtual bool accepted_while_shedding() const { return false; }  // it came while clients were refused
  virtual std::uint64_t fairness_key() const = 0;                 // whose turn it is among those who wait
  virtual bool request_complete() const LOOP_ONLY = 0;            // every byte of the request was read

  // ---- the answer; views live until flush() ----
  // 100, 103, where the client can take it: sent by itself, within the call. False: the client is gone.
  [[nodiscard]] virtual bool send_informational(const http::ResponseHead& head) LOOP_ONLY = 0;
  // `close`: nothing may follow on this wire. Returns whether that is so, which the body's framing may force.
  virtual bool send_head(const http::ResponseHead& head, bool close) LOOP_ONLY = 0;
  // The answer is 417 and no byte of the request's body came. Returns true if the wire can go on without that body: the
  // client asks again without its expectation (RFC 9110 §10.1.1).
  virtual bool await_repeat() LOOP_ONLY { return false; }
  virtual void send_body(std::string_view bytes) LOOP_ONLY = 0;
  virtual void send_end(const http::Fields& trailers) LOOP_ONLY = 0;
  // An answer of our own. Returns its status.
  virtual std::uint16_t send_fault(const Fault& fault, bool keep) LOOP_ONLY = 0;
  virtual void send_local_answer(bool keep) LOOP_ONLY = 0;  // Max-Forwards ran out
  // The 101 that was asked for, or 200 to CONNECT (null). From here on bytes, both ways.
  virtual void send_tunnel(const http::ResponseHead* switched) LOOP_ONLY = 0;
  [[nodiscard]] virtual bool flush() LOOP_ONLY = 0;  // false: the client is gone
  virtual std::size_t backlog()
      const LOOP_ONLY = 0;  // bytes that the client did not take yet; kHighWatermark pauses the source
  virtual std::size_t writable_bytes() const LOOP_ONLY { return SIZE_MAX; }  // the most that may be read for it at once
  // So little waits for it, and may still come, that an origin may send it more than the least ahead.
  virtual bool may_buffer_more() const LOOP_ONLY { return true; }
  virtual void on_tunnel() LOOP_ONLY = 0;             // send_tunnel() was flushed: on_tunnel_bytes() may come
  virtual void shut_write_when_sent() LOOP_ONLY = 0;  // tunnel: the origin said its last word

  // The exchange wants input again. Never calls back from inside.
  virtual void resume() LOOP_ONLY = 0;
  // The exchange is over and touches nothing of it any more: it is given back to its pool here. May come from inside
  // any call to the exchange.
  // What was collected and not flushed by then ends here: it leaves for this client alone, or is dropped with `cut` and
  // `gone`.
  virtual void on_exchange_end(AfterExchange next) LOOP_ONLY = 0;

  // A connection that authenticated this client (NTLM, Negotiate) and nobody else. Only where a client's connection
  // is one sequence of requests; elsewhere there is none, and one that was authenticated is closed.
  virtual pool::Lease take_private(const OriginRuntime&) LOOP_ONLY { return {}; }
  virtual bool keep_private(const OriginRuntime&, pool::Lease&) LOOP_ONLY { return false; }

 protected:
  explicit ClientStream(const ListenPoint& listener) : listener_(listener) {}
  ~ClientStream() = default;

 private:
  const ListenPoint& listener_;
};

}  // namespace carpool::proxy
