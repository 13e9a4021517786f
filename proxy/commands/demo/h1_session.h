// DemoH1Session: one HTTP/1.1 connection of the demo's origin: reads requests in order, answers each before it parses
// the next, reads nothing while a response waits to be sent, and closes after an idle time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/commands/demo/reply.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class DemoH1Session final : private exec::Watcher, private exec::Deferred, private http::BodySink {
 public:
  class Owner {
   public:
    virtual void on_connection_end(DemoH1Session& connection) LOOP_ONLY = 0;  // destroys it

   protected:
    ~Owner() = default;
  };

  DemoH1Session(exec::Loop& loop, Owner& owner, std::unique_ptr<net::Transport> transport, std::uint64_t number,
                Duration idle_timeout);
  DemoH1Session(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream, std::uint64_t number,
                Duration idle_timeout);
  DemoH1Session(const DemoH1Session&) = delete;
  DemoH1Session& operator=(const DemoH1Session&) = delete;
  ~DemoH1Session();

  Status start() LOOP_ONLY;  // on failure the caller drops the session

 private:
  enum class Phase : std::uint8_t {
    handshake,  // TLS is not established yet
    head,       // between requests, or inside a head
    body,       // the body is read and discarded
    echo,       // the body is read and sent back
    delay,      // the whole request was read, the response is delayed
    fill,       // an endless body is being sent
    linger,     // the last response was sent; further input is discarded
    closed,
  };

  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void run() override LOOP_ONLY;  // exec::Deferred: continues in another turn
  void on_timer();
  void advance() LOOP_ONLY;
  bool step() LOOP_ONLY;
  bool shake();
  bool flush();
  bool read_some() LOOP_ONLY;
  bool feed();
  void on_head();
  void on_message();
  void answer();
  void refuse(const Fault& fault);
  void fill();
  void end_of_answer(bool close);
  void linger();
  void arm();
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view name, std::string_view value) override;
  DemoVisit visit() const { return {protocol_, number_, requests_}; }

  exec::Loop& loop_;
  Owner& owner_;
  std::unique_ptr<net::Transport> transport_;
  tls::TlsTransport* stream_ = nullptr;  // the transport during the TLS handshake
  const std::uint64_t number_;
  const Duration idle_timeout_;
  exec::WatchKey key_;
  exec::Timer timer_;
  Phase phase_ = Phase::head;
  std::string protocol_ = "HTTP/1.1";

  http::RequestReader reader_;
  std::string in_;        // read but not yet parsed: pipelined requests
  std::size_t used_ = 0;  // of in_
  bool eof_ = false;      // the client sent FIN

  http::RequestHead head_;
  http::Fields trailers_;
  DemoReply reply_;
  std::uint64_t requests_ = 0;
  bool feed_on_ = false;  // the parser can continue without another byte
  Instant due_ = kNever;  // end of the delay, or of lingering

  std::string out_;
  std::size_t sent_ = 0;         // of out_
  std::uint64_t fill_left_ = 0;  // bytes still to be added to out_
  bool close_when_sent_ = false;
};

}  // namespace carpool::proxy
