// The server while it runs and when it ends: threads, periodic work, the events of its parts, teardown.
#include <algorithm>
#include <utility>

#include "exec/fan_out.h"
#include "exec/posted_function.h"
#include "pool/directory/directory.h"
#include "proxy/server/otlp/otlp_exporter.h"
#include "proxy/server/sd_notify.h"
#include "proxy/server/server.h"
#include "proxy/server/untracked_watch.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr Duration kSweepEvery = std::chrono::milliseconds(500);
constexpr Duration kStopTimeout = std::chrono::seconds(1);  // for tasks that still run after every loop has stopped
}  // namespace

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
  // The second mail arrives a turn later: the loop handles signals at the end of a turn, and a TERM that arrived during
  // the start must precede the message to the old process, which then continues.
  exec::send(first_loop(), [this]() LOOP_ONLY {
    exec::send(first_loop(), [this]() LOOP_ONLY {
      loops_started_ = true;
      watch_predecessor();
      become_ready();
    });
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
  handover_client_->begin(config_.get().handover.warm_rate);
}

// The old process may end while this one is not ready yet: then no other one answers its clients.
void Server::watch_predecessor() {
  if (!handover_client_ || !drain_->serving()) return;
  handover_client_->watch(first_loop(),
                          {exec::Bound::to<&Server::on_predecessor_left>(*this),
                           exec::Bound::to<&Server::on_handed_over>(*this), exec::Bound::to<&Server::on_late>(*this)});
}

void Server::on_predecessor_left() {
  exec::assume_on_loop();
  listeners_.on_left(net::SocketUser::predecessor);
  exec::send(admin_->loop(), [this]() LOOP_ONLY {
    if (admin_) admin_->on_left(net::SocketUser::predecessor);
    if (admin_) admin_->begin_accepting();
    if (handover_) handover_->on_left(net::SocketUser::predecessor);
  });
}

void Server::on_handed_over() {
  exec::assume_on_loop();
  exec::send(admin_->loop(), [this]() LOOP_ONLY {
    if (handover_) handover_->on_taken_over();
    if (admin_) admin_->begin_accepting();
    exec::send(first_loop(), [this]() LOOP_ONLY {  // a process that is ready accepts a successor
      if (drain_->serving()) report_ready();
    });
  });
}

// Another process took over. This one is not ready and must leave its sockets, which both have.
void Server::on_late() {
  exec::assume_on_loop();
  exec::send(first_loop(), [this]() LOOP_ONLY {  // later, because the drain stops the caller
    if (drain_->serving()) stop();
  });
}

void Server::on_clients_gone() {
  if (drain_) drain_->on_worker_empty();
}

void Server::on_stopping() {
  if (handover_client_) handover_client_->stop();  // the old process continues, unless it was told to stop before
  // systemd would end the whole service, and with it the old process.
  if (handover_client_ && !handover_client_->announced()) return;
  sd_notify("STOPPING=1");
  exec::send(admin_->loop(), [this]() LOOP_ONLY {  // a process that stops before its predecessor answered
    if (admin_) admin_->begin_accepting();
  });
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
  listeners_.end_all();
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
