// LocalHttpSession: one connection of a client whose requests carpool itself answers: HTTP/1.1, plain or over TLS, one
// request at a time, with a small body or one that the handler receives as it arrives. Reads a request, passes it to
// the handler, sends the response, and continues when all of it is sent. One timer limits the handshake, the arrival of
// a request and the sending of its response.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/downstream/buffered_request.h"
#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

class LocalHttpSession final : private exec::Watcher, private exec::Deferred {
 public:
  enum class Next : std::uint8_t {
    read,   // reads the next request
    again,  // calls next() again, because something was done
    wait,   // waits for advance()
  };
  class Handler {
   public:
    virtual void on_established() LOOP_ONLY {}  // the TLS handshake is complete
    // Called when everything is sent. Returns the next step.
    virtual Next next() LOOP_ONLY { return Next::read; }
    virtual void on_head() LOOP_ONLY {}       // head of a request whose body goes to the sink
    virtual void on_request() LOOP_ONLY = 0;  // request() is complete
    // The handler must send an error response. The session closes when it is sent, because the beginning of a next
    // request is unknown.
    virtual void on_malformed(const Fault& fault) LOOP_ONLY = 0;
    virtual void on_timeout() LOOP_ONLY = 0;
    virtual void on_end() LOOP_ONLY = 0;  // called once; the session must be destroyed later

   protected:
    ~Handler() = default;
  };
  struct Bounds {
    http::Limits head;
    std::size_t body;
    Duration handshake;
    Duration timeout;  // for a request to arrive, and for its response to be read
  };

  // `sink`: if not null, receives the bodies of the requests.
  LocalHttpSession(exec::Loop& loop, Handler& handler, std::unique_ptr<net::Transport> transport, const Bounds& bounds,
                   http::BodySink* sink = nullptr);
  LocalHttpSession(exec::Loop& loop, Handler& handler, std::unique_ptr<tls::TlsTransport> stream, const Bounds& bounds,
                   http::BodySink* sink = nullptr);
  LocalHttpSession(const LocalHttpSession&) = delete;
  LocalHttpSession& operator=(const LocalHttpSession&) = delete;
  ~LocalHttpSession();

  Status start() LOOP_ONLY;
  void advance() LOOP_ONLY;  // must be called when next() has another response
  void end() LOOP_ONLY;      // closes the connection when this object is destroyed
  // Closes once no byte of a request waits for its response. The handler's next() must return `read`.
  void end_soon() LOOP_ONLY;
  bool over() const { return over_; }
  bool established() const { return handshake_ == nullptr; }

  const BufferedRequest& request() const { return request_; }
  void done_with_request() { request_.done(); }
  // Sends `out` after the unsent bytes. Returns false if that ended the session.
  bool send(WriteBatch& out) LOOP_ONLY;
  bool flush() LOOP_ONLY;  // returns true if everything is sent
  void close_when_sent() { close_when_sent_ = true; }
  bool closes_when_sent() const { return close_when_sent_; }
  // Discards the client's input, of which only the end matters. Returns true if there was input.
  bool discard_input() LOOP_ONLY;

  // On_timeout() follows unless this is called again.
  void restart_timer() { timer_.arm(loop_.now() + bounds_.timeout); }
  void wait_until(Instant deadline) { timer_.arm(deadline); }
  void stop_waiting() { timer_.disarm(); }
  Instant request_deadline() const { return loop_.now() + bounds_.timeout; }
  net::Transport& transport() { return *transport_; }

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void run() override LOOP_ONLY { advance(); }  // in another turn
  void on_timer();
  bool step_handshake() LOOP_ONLY;
  bool read_some() LOOP_ONLY;

  exec::Loop& loop_;
  Handler& handler_;
  const Bounds bounds_;
  std::unique_ptr<net::Transport> transport_;
  tls::TlsTransport* handshake_ = nullptr;  // null: no handshake, or complete
  exec::WatchKey key_;
  exec::Timer timer_;
  BufferedRequest request_;
  WriteQueue write_queue_;
  bool close_when_sent_ = false;
  bool ends_soon_ = false;
  bool over_ = false;
};

}  // namespace carpool::proxy
