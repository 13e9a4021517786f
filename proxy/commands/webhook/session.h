// WebhookSession: one connection of the API server (or of a kubelet's probe) to the webhook: TLS, HTTP/1.1, one request
// at a time, whose body counts against a limit for all sessions together.
#pragma once

#include <memory>
#include <string>

#include "exec/loop.h"
#include "proxy/downstream/local_http_session.h"
#include "proxy/net/session_budget.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy {

class WebhookSession final : public BudgetedSession, private LocalHttpSession::Handler, private http::BodySink {
 public:
  struct Response {
    std::uint16_t status = 200;
    std::string_view content_type = "application/json";
    std::string body;
    std::string_view allow = {};  // the methods that a 405 names (RFC 9110 §15.5.6)
  };
  class Owner {
   public:
    virtual Response respond(const http::RequestHead& head, const std::string& body) LOOP_ONLY = 0;
    virtual void on_handshake_done(WebhookSession& session) LOOP_ONLY = 0;  // its TLS handshake is complete
    // The session waits for its next request, or for the rest of one that begins now.
    virtual void mark_waiting(WebhookSession& session) LOOP_ONLY = 0;
    // Called before the session allocates `bytes` more for a body, and when it has freed `bytes`. May end other
    // sessions.
    virtual void hold(WebhookSession& session, std::size_t bytes) LOOP_ONLY = 0;
    virtual void release(std::size_t bytes) LOOP_ONLY = 0;
    virtual bool stopping() const = 0;                          // the next response of each session is its last
    virtual void ended(WebhookSession& session) LOOP_ONLY = 0;  // the owner destroys the session later

   protected:
    ~Owner() = default;
  };
  WebhookSession(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream);
  WebhookSession(const WebhookSession&) = delete;
  WebhookSession& operator=(const WebhookSession&) = delete;
  ~WebhookSession();

  Status start() LOOP_ONLY { return http_.start(); }
  void end() LOOP_ONLY { http_.end(); }
  // Must be called when the program ends. A request that has begun to arrive is the last one.
  void end_soon() LOOP_ONLY { http_.end_soon(); }
  bool handshake_done() const { return http_.established(); }
  std::size_t held() const { return held_; }  // memory of the body, in bytes

 private:
  void on_established() override LOOP_ONLY { owner_.on_handshake_done(*this); }
  void on_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override;
  void on_trailer(std::string_view, std::string_view, bool) override {}
  void on_request() override LOOP_ONLY;
  void on_malformed(const Fault& fault) override LOOP_ONLY;
  void on_timeout() override LOOP_ONLY { end(); }
  void on_end() override LOOP_ONLY;
  bool send(const Response& response) LOOP_ONLY;
  void make_room(std::size_t size) LOOP_ONLY;
  void free_body() LOOP_ONLY;

  Owner& owner_;
  std::string body_;
  std::size_t held_ = 0;
  bool too_long_ = false;
  LocalHttpSession http_;
};

}  // namespace carpool::proxy
