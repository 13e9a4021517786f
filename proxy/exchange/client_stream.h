// ClientStream: the client side of an Exchange: the client of an HTTP/1.1 connection, or one stream of an HTTP/2
// connection. The exchange passes the response as messages, which the client stream encodes and sends.
//
// A response is a local reply (send_fault, send_local_reply), an origin's response (any number of send_informational,
// then send_head, send_body.., send_end), or a tunnel (send_tunnel, then send_body.. with raw bytes). Its bytes are
// collected until flush(). on_exchange_end() is the last call and occurs once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/assert.h"
#include "base/fault.h"
#include "exec/role.h"
#include "pool/destination/lease.h"
#include "proxy/exchange/listen_point.h"
#include "proxy/http/message.h"

namespace carpool::proxy::net {
class Transport;
struct IoResult;
}  // namespace carpool::proxy::net

namespace carpool::proxy {

struct OriginRuntime;

// AfterExchange: how the client's connection continues after an exchange.
enum class AfterExchange : std::uint8_t {
  keep,           // the next request may be read
  close,          // the response is complete, but the last one: close gracefully (HTTP/2: only this stream ends)
  cut,            // the response is truncated: the client gets the received part and must notice the truncation
  gone,           // the client's socket failed, or it cancelled the request
  malformed_end,  // like cut, for a response that violates the protocol: its end must not look orderly
};

class ClientStream {
 public:
  const ListenPoint& listener() const { return listener_; }
  const config::Listen& listen() const { return listener_.settings(); }
  virtual std::string_view peer() const = 0;  // address for the log
  // Returns why a CONNECT to an intercepted origin is not intercepted, or nothing for any other request.
  virtual std::optional<metrics::Intercept> stays_tunnel() const { return std::nullopt; }
  virtual int socket() const { return -1; }  // socket of the connection, for the credentials of its peer; -1 if none
  virtual std::string_view tls_version() const { return {}; }     // of the connection; empty for plain text
  bool secured() const { return !tls_version().empty(); }         // the connection uses TLS
  virtual bool accepted_while_shedding() const { return false; }  // accepted while clients were being refused
  // Returns true if the request contains a secret of carpool's own: it must reach the origin itself, and gets no other
  // credentials.
  virtual bool carries_secret() const { return false; }
  // Returns true if a request of this stream may have a span. Carpool's own requests have none, because the export of a
  // span would cause the next span.
  virtual bool traced() const { return true; }
  virtual std::uint64_t fairness_key() const = 0;       // identifies the client among waiters
  virtual bool request_complete() const LOOP_ONLY = 0;  // returns true if every byte of the request was read

  // ---- the response; views must live until flush() ----
  // Sends a 100 or 103 within the call, if the client's version allows it. Returns false if the client is gone.
  [[nodiscard]] virtual bool send_informational(const http::ResponseHead& head) LOOP_ONLY = 0;
  // `close`: no request may follow on this connection. Returns true if that is so, also because the framing of the body
  // requires it.
  virtual bool send_head(const http::ResponseHead& head, bool close) LOOP_ONLY = 0;
  virtual void send_body(std::string_view bytes) LOOP_ONLY = 0;
  virtual void send_end(const http::Fields& trailers) LOOP_ONLY = 0;
  // Returns true if the next bytes of the body may go to the client's socket without passing send_body().
  virtual bool splices_body() const LOOP_ONLY { return false; }
  // Moves at most `most` of them. `io`: the result of reading `from`, as of Transport::read(). Returns false if the
  // client is gone.
  [[nodiscard]] virtual bool splice_body(net::Transport& /*from*/, std::size_t /*max_bytes*/,
                                         net::IoResult& /*io*/) LOOP_ONLY {
    CARPOOL_ASSERT(false);
  }
  // Sends a local reply. Returns its status.
  virtual std::uint16_t send_fault(const Fault& fault, bool keep) LOOP_ONLY = 0;
  virtual void send_local_reply(bool keep) LOOP_ONLY = 0;  // for a request whose Max-Forwards is 0
  // Returns why the origin's 101 does not answer the client's handshake; empty if it does.
  virtual std::string_view why_not_switched(const http::ResponseHead&) const LOOP_ONLY { return {}; }
  // Sends the requested 101, or 200 for CONNECT (`switched` is null). Raw bytes follow in both directions.
  virtual void send_tunnel(const http::ResponseHead* switched) LOOP_ONLY = 0;
  [[nodiscard]] virtual bool flush() LOOP_ONLY = 0;  // returns false if the client is gone
  // Returns the number of bytes not yet written to the client; from kHighWatermark on the source is paused.
  virtual std::size_t backlog() const LOOP_ONLY = 0;
  // Returns how many bytes the client has accepted, counted from some moment before the response. backlog() does not
  // show it: the bytes of other responses may be in it.
  virtual std::uint64_t accepted() const LOOP_ONLY = 0;
  // Returns the maximum number of bytes that may be read for the client at once.
  virtual std::size_t writable_bytes() const LOOP_ONLY { return SIZE_MAX; }
  // Returns true if this client's send buffer is small enough to enlarge the upstream stream's window.
  virtual bool may_buffer_more() const LOOP_ONLY { return true; }
  virtual void on_tunnel() LOOP_ONLY = 0;             // send_tunnel() was flushed; on_tunnel_bytes() may be called
  virtual void shut_write_when_sent() LOOP_ONLY = 0;  // tunnel: the origin sent FIN

  // Called when the exchange accepts input again. Must not call the exchange before it returns.
  virtual void resume() LOOP_ONLY = 0;
  // Called when the exchange has ended and no longer accesses the client stream, which gives it back to its pool here.
  // May be called from within any call to the exchange. Bytes that were collected but not flushed are sent to this
  // client alone, or dropped with `cut` and `gone`.
  virtual void on_exchange_end(AfterExchange next) LOOP_ONLY = 0;

  // PrivateLease: a connection that authenticated this client (NTLM, Negotiate) and serves no other. HTTP/2 streams
  // have none: a connection that one of them authenticated is closed.
  struct PrivateLease {
    pool::Lease lease;
    bool gone = false;  // there was one, which the origin has closed
  };
  virtual PrivateLease borrow_private(const OriginRuntime&) LOOP_ONLY { return {}; }
  virtual bool keep_private(const OriginRuntime&, pool::Lease&) LOOP_ONLY { return false; }

 protected:
  explicit ClientStream(const ListenPoint& listener) : listener_(listener) {}
  ~ClientStream() = default;

 private:
  const ListenPoint& listener_;
};

}  // namespace carpool::proxy
