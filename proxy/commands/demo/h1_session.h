// DemoH1Session: one HTTP/1.1 connection of the demo's origin. Answers requests in order, sends an echo while its body
// arrives, and closes after an idle time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/intrusive.h"
#include "exec/loop.h"
#include "proxy/commands/demo/reply.h"
#include "proxy/downstream/local_http_session.h"

namespace carpool::proxy {

class DemoH1Session final : public ListHook<struct DemoH1SessionTag>,
                            private LocalHttpSession::Handler,
                            private http::BodySink {
 public:
  class Owner {
   public:
    virtual void on_connection_end(DemoH1Session& connection) LOOP_ONLY = 0;  // the owner destroys it later

   protected:
    ~Owner() = default;
  };

  // `Transport`: net::Transport, or a tls::TlsTransport before its handshake.
  template <class Transport>
  DemoH1Session(exec::Loop& loop, Owner& owner, std::unique_ptr<Transport> transport, std::uint64_t number,
                Duration idle_timeout)
      : loop_(loop),
        owner_(owner),
        number_(number),
        idle_timeout_(idle_timeout),
        http_(loop, *this, std::move(transport), bounds(idle_timeout), this) {}

  Status start() LOOP_ONLY { return http_.start(); }  // on failure the caller drops the session
  void end() LOOP_ONLY { http_.end(); }

 private:
  static LocalHttpSession::Bounds bounds(Duration idle_timeout);
  void on_established() override LOOP_ONLY;
  LocalHttpSession::Next next() override LOOP_ONLY;
  void on_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view name, std::string_view value, bool sensitive) override;
  void on_request() override LOOP_ONLY;
  void on_malformed(const Fault& fault) override LOOP_ONLY;
  void on_timeout() override LOOP_ONLY;
  void on_end() override LOOP_ONLY;
  void respond() LOOP_ONLY;
  void end_of_response();
  void send_some() LOOP_ONLY;
  LocalHttpSession::Next linger() LOOP_ONLY;
  const http::RequestHead& head() const { return http_.request().head(); }
  DemoVisit visit() const { return {protocol_, number_, requests_}; }

  exec::Loop& loop_;
  Owner& owner_;
  const std::uint64_t number_;
  const Duration idle_timeout_;
  std::string protocol_ = "HTTP/1.1";
  std::uint64_t requests_ = 0;
  DemoReply reply_;
  http::Fields trailers_;
  std::string out_;              // unsent part of the response
  std::uint64_t fill_left_ = 0;  // bytes of demo_fill() that follow `out_`
  bool echoes_ = false;          // the request's body is sent back
  bool delays_ = false;          // the response is sent when the timer expires
  bool lingers_ = false;         // the last response was sent
  LocalHttpSession http_;
};

}  // namespace carpool::proxy
