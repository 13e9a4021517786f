// WebhookSession: one connection of the API server (or of a kubelet's probe) to the webhook: TLS, HTTP/1.1, one request
// at a time.
#pragma once

#include <memory>
#include <string>

#include "exec/loop.h"
#include "proxy/downstream/buffered_request.h"
#include "proxy/net/session_budget.h"
#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

class WebhookSession final : public BudgetedSession, private exec::Watcher {
 public:
  struct Answer {
    std::uint16_t status = 200;
    std::string_view content_type = "application/json";
    std::string body;
  };
  class Owner {
   public:
    virtual Answer answer(const http::RequestHead& head, const std::string& body) LOOP_ONLY = 0;
    virtual void shaken(WebhookSession& session) LOOP_ONLY = 0;  // its TLS handshake is complete
    virtual void waits(WebhookSession& session) LOOP_ONLY = 0;   // it waits for its next request
    virtual void ended(WebhookSession& session) LOOP_ONLY = 0;   // the owner destroys the session later

   protected:
    ~Owner() = default;
  };
  WebhookSession(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream);
  WebhookSession(const WebhookSession&) = delete;
  WebhookSession& operator=(const WebhookSession&) = delete;
  ~WebhookSession();

  Status start() LOOP_ONLY;
  void end() LOOP_ONLY;
  // The program is ending: closes after the response in progress.
  void end_soon() LOOP_ONLY;
  bool is_shaken() const { return shaken_; }

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_timer();
  void advance() LOOP_ONLY;
  bool shake() LOOP_ONLY;
  bool read_some() LOOP_ONLY;
  void reply() LOOP_ONLY;
  void refuse();
  void send(const Answer& answer);
  void write(std::string_view bytes);
  bool flush();

  exec::Loop& loop_;
  Owner& owner_;
  std::unique_ptr<tls::TlsTransport> stream_;
  exec::WatchKey key_;
  exec::Timer timer_;
  BufferedRequest intake_;
  WriteQueue write_queue_;
  bool shaken_ = false;
  bool last_ = false;  // close when everything is sent
  bool failed_ = false;
  bool over_ = false;
};

}  // namespace carpool::proxy
