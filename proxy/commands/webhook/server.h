// WebhookServer: `carpool webhook`, the Kubernetes admission webhook that adds carpool to pods. Runs separately from
// the proxy, with one loop, HTTPS, and three watched files: certificate, key, and the injection.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/deferred_deleter.h"
#include "exec/uv/loop.h"
#include "exec/uv/signal.h"
#include "proxy/commands/webhook/options.h"
#include "proxy/commands/webhook/review.h"
#include "proxy/commands/webhook/session.h"
#include "proxy/net/acceptor.h"
#include "proxy/net/session_budget.h"
#include "proxy/net/tls/server_context.h"
#include "proxy/server/reload/file_monitor.h"

namespace carpool::proxy {

class WebhookServer final : private WebhookSession::Owner, private net::Acceptor::Owner {
 public:
  // Reads the files and starts listening.
  static Result<std::unique_ptr<WebhookServer>> make(const WebhookOptions& options);
  WebhookServer(const WebhookOptions& options, std::unique_ptr<exec::UvLoop> loop);  // for make()
  ~WebhookServer();

  const net::Address& address() const { return acceptor_.address(); }
  void run();  // until TERM or INT; HUP reloads the files

 private:
  using Budget = SessionBudget<WebhookSession>;
  static void make_room(Budget& budget, std::uint64_t& count) LOOP_ONLY;
  static void end_all_soon(Budget& budget) LOOP_ONLY;
  Status open(Digests in_force);
  void watch(Digests in_force) LOOP_ONLY;
  std::vector<std::string> files() const;
  Status load();
  void on_client(net::Acceptor& acceptor, Fd client, const net::Address& peer) override LOOP_ONLY;
  WebhookSession::Response respond(const http::RequestHead& head, const std::string& body) override LOOP_ONLY;
  WebhookSession::Response review(const std::string& body);
  std::string metrics() const;
  void on_handshake_done(WebhookSession& session) override LOOP_ONLY;
  void mark_waiting(WebhookSession& session) override LOOP_ONLY { sessions_.mark_waiting(session); }
  void hold(WebhookSession& session, std::size_t bytes) override LOOP_ONLY;
  void release(std::size_t bytes) override LOOP_ONLY { held_ -= bytes; }
  bool stopping() const override { return stopping_; }
  void ended(WebhookSession& session) override LOOP_ONLY;
  void stop_if_empty();
  static void signalled(void* self, int number);
  void reload();
  void stop();
  void close() LOOP_ONLY;
  void on_drain_delay();

  // Handshakes have their own limit, so that clients that do not complete theirs cannot block reviews.
  static constexpr std::size_t kMaxHandshakes = 64, kMaxSessions = 128;
  // Limit of the bodies of all sessions together: three of the longest, or hundreds of usual ones.
  static constexpr std::size_t kMaxHeld = std::size_t{12} * 1024 * 1024;
  const WebhookOptions options_;
  std::unique_ptr<exec::UvLoop> loop_;
  std::unique_ptr<tls::ServerContext> tls_;
  std::unique_ptr<webhook::Reviewer> reviewer_;
  double certificate_end_ = 0;  // Unix time
  FileMonitor watch_;
  net::Acceptor acceptor_;
  std::vector<exec::Signal> signals_;
  Budget handshakes_{kMaxHandshakes, 0}, sessions_{kMaxSessions, 0};  // own their sessions, like the next
  exec::DeferredDeleter<WebhookSession, SessionBudgetTag> ended_sessions_;
  std::uint64_t handshakes_ended_ = 0, idle_ended_ = 0;  // sessions ended to make room for new clients
  std::uint64_t bodies_ended_ = 0;                       // and for the bodies of others
  std::size_t held_ = 0;                                 // memory of all bodies
  std::array<std::uint64_t, 4> outcomes_{};              // by webhook::Outcome
  std::uint64_t bodies_over_ = 0, overlays_over_ = 0;    // requests over a size limit
  exec::Timer drain_delay_, drain_deadline_;
  bool stopping_ = false;
};

// Runs the webhook and returns the exit code of the program.
int serve_webhook(const WebhookOptions& options);

}  // namespace carpool::proxy
