#include "proxy/commands/webhook/server.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/contents.h"
#include "exec/uv/held_signals.h"
#include "metrics/families.h"
#include "metrics/prometheus.h"
#include "proxy/config/exit_code.h"
#include "proxy/config/options.h"
#include "proxy/net/tls/certificate_end.h"
#include "proxy/server/sd_notify.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {
namespace {

constexpr Duration kDrainTime = std::chrono::seconds(20);  // within Kubernetes's default grace period of 30 s
constexpr int kWebhookBacklog = 128;
constexpr int kReviewsAtOnce = 8;  // accepts per turn: their requests are read before a new client evicts one of them
constexpr std::size_t kMaxInjection = std::size_t{1024} * 1024;  // the limit of a ConfigMap
constexpr std::array<std::string_view, 4> kOutcomes{"injected", "untouched", "refused", "malformed"};

bool is(const http::RequestHead& head, std::string_view path) {
  return head.target == path || (head.target.starts_with(path) && head.target[path.size()] == '?');
}

}  // namespace

Result<std::unique_ptr<WebhookServer>> WebhookServer::make(const WebhookOptions& options) {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(0);
  if (!loop) return loop.take_fault();
  auto server = std::make_unique<WebhookServer>(options, std::move(*loop));
  const std::vector<FileSnapshot> before = take_snapshots(server->files());
  if (Status loaded = server->load(); !loaded) return loaded.take_fault();
  if (Status opened = server->open(read_between(before, take_snapshots(server->files()))); !opened)
    return opened.take_fault();
  return server;
}

WebhookServer::WebhookServer(const WebhookOptions& options, std::unique_ptr<exec::UvLoop> loop)
    : options_(options),
      loop_(std::move(loop)),
      watch_(*loop_, exec::Bound::to<&WebhookServer::reload>(*this)),
      acceptor_(*loop_, *this, kReviewsAtOnce),
      ended_sessions_(*loop_, exec::Bound::to<&WebhookServer::stop_if_empty>(*this)),
      drain_delay_(exec::Timer::bind<&WebhookServer::on_drain_delay>(*loop_, *this)),
      drain_deadline_(exec::Timer::bind<&WebhookServer::stop>(*loop_, *this)) {}

WebhookServer::~WebhookServer() {
  loop_->enter();
  acceptor_.stop();
  while (WebhookSession* session = handshakes_.any()) session->end();
  while (WebhookSession* session = sessions_.any()) session->end();
  ended_sessions_.destroy_all();
  signals_.clear();
  loop_->drain();
}

// Loads all files or none: if one of them is invalid, the previous state stays in force.
Status WebhookServer::load() {
  tls::ServerSettings identity;
  identity.cert_file = options_.certificate;
  identity.key_file = options_.key;
  identity.alpn.clear();  // the API server also offers HTTP/2, and uses HTTP/1.1 when none is selected
  auto tls = tls::ServerContext::make(identity);
  if (!tls) return tls.take_fault();
  Result<std::string> injection = contents(options_.injection, kMaxInjection);
  if (!injection) {
    return Fault{FaultKind::malformed_request, Side::self,
                 "cannot read " + options_.injection + ": " + injection.fault().detail};
  }
  auto reviewer = webhook::Reviewer::make(*injection);
  if (!reviewer) return reviewer.take_fault();
  const auto end = tls::certificate_end(options_.certificate);
  if (end) certificate_end_ = std::chrono::duration<double>(end->time_since_epoch()).count();
  tls_ = std::move(*tls);
  reviewer_ = std::move(*reviewer);
  return Done{};
}

Status WebhookServer::open(Digests in_force) {
  loop_->enter();
  Result<net::Bound> bound = net::bind_and_listen(options_.listen, kWebhookBacklog);
  if (!bound) return bound.take_fault();
  if (Status started = acceptor_.start(std::move(*bound)); !started) return started;
  auto signals = exec::on_signals(*loop_, exec::kHandledSignals, &WebhookServer::signalled, this);
  if (!signals) return signals.take_fault();
  signals_ = std::move(*signals);
  watch(std::move(in_force));
  return Done{};
}

// As carpool itself: HUP reloads, USR1 reopens the file to which stderr was redirected.
void WebhookServer::signalled(void* self, int number) {
  auto& server = *static_cast<WebhookServer*>(self);
  if (number == SIGHUP) return server.reload();
  if (number == SIGUSR1) return static_cast<void>(log::reopen());
  server.stop();
}

void WebhookServer::watch(Digests in_force) {
  if (const Status watched = watch_.watch(files(), std::move(in_force)); !watched) {
    log::warn("webhook", watched.fault().detail);
  }
}

void WebhookServer::run() {
  loop_->run();
}

// Reads a few small files, a few times a year, so reviews wait only for milliseconds.
void WebhookServer::reload() {
  exec::assume_on_loop();
  const std::vector<FileSnapshot> before = take_snapshots(files());
  if (const Status loaded = load(); !loaded) {
    log::error("webhook", "reload refused", {{"why", std::string_view(loaded.fault().detail)}});
    return watch_.try_again();  // a certificate without its key yet, no descriptor
  }
  log::info("webhook", "reloaded");
  watch(read_between(before, take_snapshots(files())));
}

std::vector<std::string> WebhookServer::files() const {
  return {options_.certificate, options_.key, options_.injection};
}

void WebhookServer::on_client(net::Acceptor&, Fd client, const net::Address&) {
  make_room(handshakes_, handshakes_ended_);
  WebhookSession::Owner& owner = *this;
  auto session = std::make_unique<WebhookSession>(*loop_, owner, tls_->accept(std::move(client)));
  if (!session->start()) return;
  handshakes_.join(*session.release());  // owned by the budgets until it has ended
}

void WebhookServer::make_room(Budget& budget, std::uint64_t& count) {
  if (!budget.full()) return;
  budget.next_waiting(nullptr)->end();  // no response is ever in progress, because each is written at once
  ++count;
}

// Ends the sessions whose request has been incomplete for longest, until the bodies of the others fit.
void WebhookServer::hold(WebhookSession& session, std::size_t bytes) {
  held_ += bytes;
  for (WebhookSession* one = sessions_.next_waiting(nullptr); held_ > kMaxHeld && one != nullptr;) {
    WebhookSession* const after = sessions_.next_waiting(one);
    if (one != &session && one->held() != 0) {
      one->end();
      ++bodies_ended_;
    }
    one = after;
  }
}

void WebhookServer::on_handshake_done(WebhookSession& session) {
  handshakes_.leave(session);
  make_room(sessions_, idle_ended_);
  sessions_.join(session);
}

WebhookSession::Response WebhookServer::respond(const http::RequestHead& head, const std::string& body) {
  if (is(head, "/inject")) {
    return head.method == "POST"
               ? review(body)
               : WebhookSession::Response{405, "application/json", R"({"error": "expected POST"})", "POST"};
  }
  if (is(head, "/livez")) return {200, "text/plain", "ok\n"};
  if (is(head, "/readyz"))
    return stopping_ ? WebhookSession::Response{503, "text/plain", "draining\n"}
                     : WebhookSession::Response{200, "text/plain", "ok\n"};
  if (is(head, "/metrics")) return {200, metrics::kContentType, metrics()};
  return {404, "application/json", R"({"error": "expected /inject, /livez, /readyz or /metrics"})"};
}

WebhookSession::Response WebhookServer::review(const std::string& body) {
  const webhook::ReviewResult result = reviewer_->review(body);
  ++outcomes_[static_cast<std::size_t>(result.outcome)];
  if (result.over == webhook::ReviewLimit::body) ++bodies_over_;
  if (result.over == webhook::ReviewLimit::overlay) ++overlays_over_;
  const std::string_view outcome = kOutcomes[static_cast<std::size_t>(result.outcome)];
  if (result.outcome == webhook::Outcome::refused) {
    log::warn("webhook", "review",
              {{"outcome", outcome}, {"pod", std::string_view(result.pod)}, {"why", std::string_view(result.why)}});
  } else {
    log::info("webhook", "review", {{"outcome", outcome}, {"pod", std::string_view(result.pod)}});
  }
  const bool understood = result.outcome != webhook::Outcome::malformed;
  return {static_cast<std::uint16_t>(understood ? 200 : 400), "application/json", result.body};
}

std::string WebhookServer::metrics() const {
  metrics::Sample sample;
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) sample.reviews.push_back({kOutcomes[i], outcomes_[i]});
  sample.webhook_shed = {{"handshake", handshakes_ended_}, {"idle", idle_ended_}, {"body", bodies_ended_}};
  sample.webhook_limits = {{"body", bodies_over_}, {"overlay", overlays_over_}};
  sample.certificates = {{"webhook", options_.certificate, certificate_end_}};
  sample.process = metrics::read_process();
  sample.build = {std::string(config::version()), __VERSION__, "webhook"};
  sample.log_dropped = log::dropped();
  return metrics::exposition(metrics::Registry(1, 1), std::move(sample));
}

void WebhookServer::ended(WebhookSession& session) {
  (session.handshake_done() ? sessions_ : handshakes_).leave(session);
  ended_sessions_.destroy_later(std::unique_ptr<WebhookSession>(&session));
}

void WebhookServer::stop_if_empty() {
  if (stopping_ && !drain_delay_.armed() && handshakes_.size() + sessions_.size() == 0) loop_->stop();
}

// Keeps accepting for `drain_delay`, because the API server learns only later that this replica ends. A second signal
// ends at once.
void WebhookServer::stop() {
  exec::assume_on_loop();
  if (std::exchange(stopping_, true)) return loop_->stop();
  if (options_.drain_delay == Duration::zero()) return close();
  drain_delay_.arm(loop_->now() + options_.drain_delay);
}

void WebhookServer::on_drain_delay() {
  exec::assume_on_loop();
  close();
}

// Requests that have begun to arrive are answered, within a time limit.
void WebhookServer::close() {
  if (handshakes_.size() + sessions_.size() == 0) return loop_->stop();
  acceptor_.stop();
  drain_deadline_.arm(loop_->now() + kDrainTime);
  while (WebhookSession* session = handshakes_.any()) session->end();
  end_all_soon(sessions_);
}

// A session reads before it ends, which may end others (hold()). They are destroyed after this turn.
void WebhookServer::end_all_soon(Budget& budget) {
  std::vector<WebhookSession*> all;
  for (WebhookSession* one = budget.next_waiting(nullptr); one != nullptr; one = budget.next_waiting(one))
    all.push_back(one);
  for (WebhookSession* const one : all) one->end_soon();
}

int serve_webhook(const WebhookOptions& options) {
  const exec::HeldSignals held;
  if (!log::start(log::Options{})) {
    std::fputs("carpool: cannot start the log's thread\n", stderr);
    return kExitInternal;
  }
  Result<std::unique_ptr<WebhookServer>> server = WebhookServer::make(options);
  if (!server) {
    log::stop();
    std::fprintf(stderr, "carpool: %s\n", server.fault().detail.c_str());
    return server.fault().kind == FaultKind::unroutable ? kExitCannotListen : kExitConfiguration;
  }
  std::fprintf(stderr, "carpool webhook ready listen=%s\n", (*server)->address().text().c_str());
  sd_notify("READY=1");
  held.deliver();
  (*server)->run();
  held.hold();
  server = Fault{FaultKind::draining, Side::self};
  log::stop();
  return kExitClean;
}

}  // namespace carpool::proxy
