#include "proxy/server/server.h"
#include "proxy/server/untracked_watch.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>

#include "exec/fan_out.h"
#include "exec/posted_function.h"
#include "pool/directory/directory.h"
#include "proxy/config/cores.h"
#include "proxy/net/loopback_owner.h"
#include "proxy/server/otlp/otlp_exporter.h"
#include "proxy/server/sd_notify.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
constexpr Duration kSweepEvery = std::chrono::milliseconds(500);
constexpr Duration kStopTimeout = std::chrono::seconds(1);  // for tasks that still run after every loop has stopped

// RFC 9110 §7.6.3 allows a pseudonym instead of a host name. It is random per process, so that two sidecars in a row
// are not mistaken for a loop.
std::string draw_pseudonym() {
  std::random_device device;
  char text[20];
  std::snprintf(text, sizeof text, "carpool-%08x", static_cast<unsigned>(device()));
  return text;
}
}  // namespace

Server::Server(const config::Config& config)
    : config_(config),
      pseudonym_(draw_pseudonym()),
      metrics_(std::make_unique<metrics::Registry>(config.workers, config.metrics.max_origins)) {}

Result<std::unique_ptr<Server>> Server::build(const config::Config& config, std::optional<config::Options> source) {
  raise_descriptor_limit();
  std::unique_ptr<Server> server(new Server(config));
  std::vector<FileSnapshot> before = take_snapshots(Reloader::files(source, config));
  if (Status opened = server->open(); !opened) return opened.take_fault();
  server->make_reloader(std::move(source), std::move(before));
  return server;
}

// Builds in this order: rules, origins, loops, listeners. Each depends on those before.
Status Server::open() {
  const config::Config& config = config_.get();
  if (!config.handover.address.empty()) {
    Result<std::unique_ptr<HandoverClient>> handover_client = HandoverClient::ask(config.handover.address);
    if (!handover_client) return handover_client.take_fault();
    handover_client_ = std::move(*handover_client);
  }
  Result<std::unique_ptr<net::EgressPolicy>> policy = net::EgressPolicy::make(config.egress);
  if (!policy) return policy.take_fault();
  policy_ = std::move(*policy);
  Result<std::unique_ptr<OriginRegistry>> origins = config_.with_mutable(
      [this](config::Config& own) { return OriginRegistry::make(own, pool_environment_, *metrics_); });
  if (!origins) return origins.take_fault();
  origins_ = std::move(*origins);
  pool_environment_.set_origins(*origins_, *metrics_);
  credential_files_ = std::make_unique<CredentialFiles>(*origins_, *metrics_);
  Result<InterceptLeaves::Plan> leaves = intercept_leaves_.prepare(config);
  if (!leaves) return leaves.take_fault();
  intercept_leaves_.apply(std::move(*leaves));
  executors_ = std::make_unique<Executors>(config.threads, config.workers + 1, config::granted_cores());
  if (Status started = executors_->start(); !started) return started;
  if (Status made = make_workers(); !made) return made;
  tokens_ = std::make_unique<TokenKeepers>(*origins_, workers_);
  drain_ = std::make_unique<Drain>(first_loop(), static_cast<Drain::Host&>(*this));
  warm_up_ = std::make_unique<WarmUp>(first_loop(), *origins_, config_, static_cast<WarmUp::Host&>(*this));
  idle_pool_reaper_ = std::make_unique<IdlePoolReaper>(*origins_, workers_, config_);
  if (Status opened = open_listeners(); !opened) return opened;
  if (Status opened = open_admin(); !opened) return opened;
  return open_handover();
}

Status Server::make_workers() {
  const config::Config& config = config_.get();
  const WorkerParts parts{config,      *executors_, *origins_, *policy_,   *metrics_,  overload_,   leaks_,
                          intercepts_, *this,       *this,     pseudonym_, processes_, h2_contexts_};
  for (std::uint32_t i = 0; i < config.workers; ++i) {
    Result<std::unique_ptr<Worker>> worker = Worker::make(parts, static_cast<exec::LoopId>(i));
    if (!worker) return worker.take_fault();
    h2_contexts_.push_back(&(*worker)->parts.sessions);
    workers_.push_back(std::move(*worker));
  }
  return Done{};
}

Listener::Parts Server::listener_parts() {
  std::vector<ClientAcceptor*> acceptors;
  for (auto& worker : workers_) acceptors.push_back(&worker->parts.clients);
  return {std::move(acceptors), &workers_.front()->parts.stats, &overload_, &origins_->directory()};
}

std::optional<net::Bound> Server::inherited(std::string_view role, const std::string& address) {
  return handover_client_ ? handover_client_->take(role, address) : std::nullopt;
}

Status Server::open_listeners() {
  exec::assume_on_loop();  // no loop runs yet
  if (!net::kernel_names_owners()) {
    log::info("server",
              "the kernel does not name the owners of sockets on loopback (sock_diag): there, each connection is a "
              "client of its own");
  }
  listeners_.set_parts(listener_parts());
  for (const config::Listen& listen : config_.get().listen) {
    if (Status opened = listeners_.open(listen, inherited("listen", listen.name())); !opened) return opened;
  }
  std::vector<net::Address> own;
  for (const auto& listener : listeners()) own.push_back(listener->address());
  policy_->set_own_listeners(std::move(own));
  return Done{};
}

Status Server::open_admin() {
  const config::Config& config = config_.get();
  view_ = std::make_unique<ServerAdminView>(
      ServerAdminView::Parts{config_, *metrics_, *origins_, workers_, leaks_, overload_, intercept_leaves_, executors_,
                             certificates_, heap_trim_, untracked_, admin_, reloader_, drain_, warm_up_});
  otlp_ = std::make_unique<OtlpExporter>(config_, workers_, *metrics_, *view_);
  control_ = std::make_unique<ServerAdminControl>(
      ServerAdminControl::Parts{first_loop(), *origins_, *policy_, *drain_, *warm_up_, reloader_});
  admin_ = std::make_unique<AdminServer>(*executors_, config_, *view_, *control_);
  AdminServer::Inherited given{inherited("admin", config.admin.address), inherited("metrics", config.metrics.address)};
  if (Status opened = admin_->open(std::move(given)); !opened) return opened;
  overload_monitor_ =
      std::make_unique<OverloadMonitor>(admin_->loop(), overload_, config_, origins_->directory(), workers_);
  std::vector<net::Address> own;
  for (const net::Address* address : {admin_->address(), admin_->metrics_address()}) {
    if (address != nullptr) own.push_back(*address);
  }
  // The hand-over socket passes the listening sockets to any process of this user, so requests must not reach it.
  if (Result<net::Address> socket = net::Address::parse(config.handover.address)) own.push_back(*socket);
  policy_->set_forbidden(std::move(own));
  return Done{};
}

Status Server::open_handover() {
  const std::string& address = config_.get().handover.address;
  if (address.empty()) return Done{};
  handover_ = std::make_unique<HandoverListener>(
      HandoverListener::Parts{*admin_, config_, *origins_, first_loop(), listeners_, *drain_});
  if (Status opened = handover_->open(address, inherited("handover", address)); !opened) return opened;
  if (handover_client_) handover_client_->restore_learned_state(*origins_, *policy_);
  return Done{};
}

void Server::make_reloader(std::optional<config::Options> source, std::vector<FileSnapshot> before) {
  const ReloadBarrier::Parts round{workers_, listeners_, *origins_, *drain_};
  reloader_ = std::make_unique<Reloader>(
      Reloader::Parts{certificates_, config_, *policy_, *admin_, intercept_leaves_, round,
                      exec::Bound::to<&Server::watch_files>(*this), exec::Bound::to<&Server::try_files_again>(*this)},
      std::move(source));
  reloader_->started(std::move(before));
  files_ = std::make_unique<FileWatch>(admin_->loop(), exec::Bound::to<&Reloader::ask>(*reloader_));
  watch_files();  // the admin thread has not started
}

void Server::watch_files() {
  exec::assume_on_loop();
  reloader_->with_files([this](const std::vector<std::string>& files, const Digests& read) LOOP_ONLY {
    if (Status watched = files_->watch(files, read); !watched) log::warn("reload", watched.fault().detail);
  });
}

void Server::try_files_again() {
  exec::assume_on_loop();
  files_->try_again();
}

Server::End Server::run() {
  exec::Loop& first = first_loop();
  const config::Config& config = config_.get();
  sweeper_ = std::make_unique<exec::Timer>(first, exec::Bound::to<&Server::sweep>(*this));
  sweeper_->arm(first.now() + kSweepEvery);
  if (config.log.sync > Duration::zero()) {
    log_sync_ = std::make_unique<LogSync>(admin_->loop(), *executors_, config.log.sync);
  }
  intercept_leaves_.start(admin_->loop(), *executors_);
  credential_files_->start(admin_->loop(), *executors_);
  heap_trim_ = std::make_unique<HeapTrim>(admin_->loop(), *executors_, overload_);
  untracked_ = std::make_unique<UntrackedWatch>(admin_->loop(), *executors_, origins_->directory(), leaks_);
  exec::assume_on_loop();  // the loop does not run yet
  summary_ = std::make_unique<StatsSummaryLog>(first, *view_, config.metrics.summary_interval);
  summary_->start();
  workers_.front()->run_on_this_thread([this] {
    exec::assume_on_loop();
    warm_up_->start();
    tokens_->sweep();
    otlp_->sweep();
  });
  return wait_for_end(start_loops());
}

// After a Fault the loops that were started keep running until they are stopped here.
Status Server::start_loops() {
  const auto fault = [](const std::string& loop) {
    return Fault{FaultKind::internal, Side::self, "cannot start a thread for " + loop};
  };
  if (!admin_->start()) return fault("the admin loop");
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i]->start()) continue;
    // On the first loop, because a TERM may have arrived there, and a loop is stopped once.
    if (i > 0) exec::send(first_loop(), [this]() LOOP_ONLY { stop(), stop(); });
    for (std::size_t started = 0; started < i; ++started) workers_[started]->wait_until_stopped();
    return fault("loop " + std::to_string(i));
  }
  exec::send(first_loop(), [this]() LOOP_ONLY {
    loops_started_ = true;
    become_ready();
  });
  return Done{};
}

Server::End Server::wait_for_end(Status started) {
  if (started) {
    for (auto& worker : workers_) worker->wait_until_stopped();
  }
  admin_->stop();
  return {std::move(started), executors_->stop(kStopTimeout)};
}

// Closes idle connections that expired or exceeded the idle timeout, without waiting for traffic.
void Server::sweep() {
  exec::assume_on_loop();
  const Instant now = first_loop().now();
  origins_->directory().sweep(now);
  idle_pool_reaper_->sweep(now);
  tokens_->sweep();
  warm_up_->sweep();
  sweeper_->arm(now + kSweepEvery);
}

void Server::reopen_logs() {
  exec::send(admin_->loop(), [] {
    if (log::reopen()) return log::info("server", "log reopened");
    log::warn("server", "the log is not reopened: it is not a file, or its name cannot be opened");
  });
}

// ---- events of the parts ----

std::uint64_t Server::on_warm_dial_begun() {
  return warm_up_ ? warm_up_->dial_begun() : 0;
}

void Server::on_warm_dial_ended(std::uint64_t attempt, const Fault* fault) {
  if (warm_up_) warm_up_->dial_ended(attempt, fault);
}

void Server::on_warm() {
  warm_ = true;
  become_ready();
}

// The old process may stop only for a process whose loops all run and that does not stop itself.
void Server::become_ready() {
  if (!loops_started_ || !warm_ || !drain_->serving()) return;
  if (!handover_client_) return report_ready();
  handover_client_->begin(first_loop(), config_.get().handover.warm_rate,
                          exec::Bound::to<&Server::on_handed_over>(*this));
}

void Server::on_handed_over() {
  exec::assume_on_loop();
  if (handover_client_->alone()) {
    listeners_.on_left(net::SocketUser::predecessor);
    exec::send(admin_->loop(), [this]() LOOP_ONLY {
      if (admin_) admin_->on_left(net::SocketUser::predecessor);
      if (handover_) handover_->on_left(net::SocketUser::predecessor);
    });
  }
  if (drain_->serving()) report_ready();
}

void Server::on_clients_gone() {
  if (drain_) drain_->on_worker_empty();
}

void Server::on_stopping() {
  if (handover_client_) handover_client_->stop();  // the old process continues, unless it was told to stop before
  sd_notify("STOPPING=1");
}

void Server::drain_clients() {
  exec::post_to_loops(workers_, [](Worker& worker) LOOP_ONLY { worker.parts.clients.drain(); });
}

void Server::start_graceful_close() {
  exec::post_to_loops(workers_, [](Worker& worker) LOOP_ONLY { worker.parts.clients.start_graceful_close(); });
}

bool Server::clients_gone() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->parts.clients.empty(); });
}

bool Server::begin_last_export() {
  return otlp_->export_last(exec::Bound::to<&Server::on_last_export>(*this));
}

void Server::on_last_export() {
  exec::assume_on_loop();
  drain_->on_last_export();
}

void Server::stop_loops() {
  for (auto& worker : workers_) worker->stop();
}

// Stops and destroys the parts that run beside the workers: periodic tasks, the file watch, the admin endpoint, the
// hand-over.
void Server::end_background_work() {
  sweeper_.reset();
  if (handover_client_) handover_client_->stop();
  summary_.reset();
  if (log_sync_) log_sync_->stop();
  if (heap_trim_) heap_trim_->stop();
  if (untracked_) untracked_->stop();
  intercept_leaves_.stop();
  if (credential_files_) credential_files_->stop();
  if (heap_trim_) admin_->loop().drain();  // mail of their last rounds
  intercept_leaves_.end();
  if (credential_files_) credential_files_->end();
  heap_trim_.reset();
  untracked_.reset();
  log_sync_.reset();
  files_.reset();
  handover_.reset();
  if (overload_monitor_) overload_monitor_->stop();
  admin_.reset();
  warm_up_.reset();
}

Server::~Server() {
  exec::assume_on_loop();  // all loops have stopped; this thread may touch their data
  end_background_work();
  listeners_.close_all();
  if (tokens_) {
    workers_.front()->run_on_this_thread([this] {
      exec::assume_on_loop();
      tokens_->stop();
      if (otlp_) otlp_->stop();
    });
  }
  for (auto& worker : workers_) worker->tear_down();
  if (origins_) {
    Worker* first = workers_.empty() ? nullptr : workers_.front().get();
    if (first != nullptr)
      first->run_on_this_thread([this, first] { origins_->directory().stop(first->parts.loop.now()); });
  }
  // Grants that were posted between loops end here, after every loop has given back its leases. Cross-loop streams need
  // up to three message rounds (cancel, acknowledge, close), so every loop is drained three times.
  for (int round = 0; round < 3; ++round) {
    for (auto& worker : workers_) worker->tear_down();
  }
  drain_.reset();
  overload_monitor_.reset();
  listeners_.clear();
  tokens_.reset();
  otlp_.reset();
  origins_.reset();
  workers_.clear();
  // The server never ran, so its threads are idle.
  if (executors_) static_cast<void>(executors_->stop(kStopTimeout));
}

}  // namespace carpool::proxy
