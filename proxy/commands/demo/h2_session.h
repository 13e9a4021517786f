// DemoH2Session: one HTTP/2 connection of the demo's origin, over TLS. Answers its requests concurrently, within their
// windows, and closes after an idle time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/commands/demo/reply.h"
#include "proxy/http/h2/session.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy {

class DemoH2Session final : private exec::Watcher, private exec::Deferred, private http::H2Sink {
 public:
  class Owner {
   public:
    virtual void on_session_end(DemoH2Session& session) LOOP_ONLY = 0;  // the owner destroys it

   protected:
    ~Owner() = default;
  };

  DemoH2Session(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream, std::uint64_t number,
                Duration idle_timeout);
  DemoH2Session(const DemoH2Session&) = delete;
  DemoH2Session& operator=(const DemoH2Session&) = delete;
  ~DemoH2Session();

  Status start() LOOP_ONLY;  // on failure the caller drops the session

 private:
  // Call: one request and its response; ends when its stream is closed.
  class Call final : public http::H2StreamUser {
   public:
    Call(DemoH2Session& session, http::H2Stream& stream, const http::RequestHead& head);
    bool over() const { return stream_ == nullptr; }
    Instant due() const { return due_; }
    void respond();

   private:
    void respond(bool end);
    void fill();
    void on_head(http::ResponseHead&) override {}
    void on_body(std::string_view bytes) override;
    void on_trailers(const http::Fields& fields) override { trailers_ = fields; }
    void on_end() override;
    void on_sent(std::size_t bytes) override;
    void on_closed(http::H2Error) override { stream_ = nullptr; }

    DemoH2Session& session_;
    http::H2Stream* stream_;
    const DemoReply reply_;
    const std::uint64_t request_;
    const bool bodiless_;
    std::uint64_t length_ = 0;  // length of an echo, if the request has a Content-Length
    bool has_length_ = false;
    std::uint64_t fill_left_ = 0;
    http::Fields trailers_;
    Instant due_ = kNever;
  };

  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void run() override LOOP_ONLY;  // exec::Deferred: continues in another turn
  void on_timer();
  void advance() LOOP_ONLY;
  bool step_handshake();
  void read_some() LOOP_ONLY;
  void flush() LOOP_ONLY;
  void arm() LOOP_ONLY;
  http::H2StreamUser* on_request(http::H2Stream& stream, http::RequestHead& head) override;
  void on_refused_head(http::H2Stream& stream, FaultKind) override;
  void on_settings(const http::H2PeerSettings&) override {}
  void on_goaway(http::StreamId, http::H2Error) override {}
  void on_ping_ack(std::uint64_t) override {}
  DemoVisit visit(std::uint64_t request) const { return {protocol_, number_, request}; }

  exec::Loop& loop_;
  Owner& owner_;
  std::unique_ptr<tls::TlsTransport> stream_;
  const std::uint64_t number_;
  const Duration idle_timeout_;
  exec::WatchKey key_;
  exec::Timer timer_;
  http::H2Session session_;
  std::list<Call> calls_;
  std::string protocol_ = "HTTP/2";
  std::uint64_t requests_ = 0;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_ that were sent
  bool established_ = false;
  bool closed_ = false;
};

}  // namespace carpool::proxy
