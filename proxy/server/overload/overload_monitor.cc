#include "proxy/server/overload/overload_monitor.h"

#include <algorithm>
#include <utility>

#include "proxy/config/in_force.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/server/overload/memory_reserve.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
constexpr Duration kLevelInterval = std::chrono::milliseconds(250);
constexpr Duration kShortFor = std::chrono::seconds(1);  // after the last failed allocation
constexpr double kAll = 100;
constexpr int kMaxClosed = 256;  // idle upstream connections closed per sample
}  // namespace

OverloadMonitor::OverloadMonitor(exec::Loop& loop, OverloadState& overload, const ConfigInForce& config,
                                 pool::Directory& pools, const Workers& workers)
    : loop_(loop),
      overload_(overload),
      config_(config),
      timer_(std::make_unique<exec::Timer>(loop, exec::Bound::to<&OverloadMonitor::sample>(*this))) {
  for (const auto& worker : workers) {
    idle_closers_.push_back(std::make_unique<IdleCloser>(pools, worker->parts, worker == workers.front()));
  }
  sample();  // before the first client is accepted
}

OverloadMonitor::~OverloadMonitor() = default;

void OverloadMonitor::sample() {
  exec::assume_on_loop();
  // Copies the rules, because a reload runs as a task and may replace the configuration while this thread reads it.
  const auto rules = config_.with([](const config::Config& config) { return config.overload; });
  const Use memory = memory_use(rules.memory_limit);
  const Use descriptors = descriptor_use();
  const ShedLevel before = overload_.level();
  const Watermarks marks{rules.stop_keep_alive, rules.refuse_clients, rules.close_idle};
  const double memory_percent = memory_failed(loop_.now()) ? kAll : memory.percent();
  const ShedLevel now = next_level(before, std::max(memory_percent, descriptors.percent()), marks);
  overload_.set(now, memory, memory_percent, descriptors, marks);
  if (now != logged_) log_change(std::exchange(logged_, now), now);
  if (now == ShedLevel::idle) {
    for (const auto& closer : idle_closers_) closer->send();
  }
  timer_->arm(loop_.now() + kLevelInterval);
}

// Returns true if an allocation failed recently, or if the reserve cannot be refilled at all.
bool OverloadMonitor::memory_failed(Instant now) {
  const bool none = memory_reserve::refill() == 0;
  const std::uint64_t failures = memory_reserve::taken();
  if (failures != failures_seen_ || none) memory_short_until_ = now + kShortFor;
  failures_seen_ = failures;
  return now < memory_short_until_;
}

void OverloadMonitor::log_change(ShedLevel before, ShedLevel now) const {
  const Use memory = overload_.memory(), descriptors = overload_.descriptors();
  const log::Fields fields{{"shed_level", name(now)},
                           {"sheds", name(now)},  // the former name, for one release
                           {"before", name(before)},
                           {"memory", memory.used},
                           {"memory_limit", memory.limit},
                           {"descriptors", descriptors.used},
                           {"descriptor_limit", descriptors.limit},
                           {"failed_allocations", failures_seen_}};
  if (now > before) return log::warn("overload", "usage above the threshold: shedding more load", fields);
  log::info("overload", "usage below the threshold: shedding less load", fields);
}

void OverloadMonitor::IdleCloser::close_idle() {
  exec::assume_on_loop();
  worker_.clients.shed_idle();
  if (closes_upstream_) close_idle_upstream();
}

void OverloadMonitor::IdleCloser::close_idle_upstream() {
  const Instant now = worker_.loop.now();
  for (int closed = 0; closed < kMaxClosed; ++closed) {
    if (!free_a_descriptor(pools_, now)) return;
  }
}

}  // namespace carpool::proxy
