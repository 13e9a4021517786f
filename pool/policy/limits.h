// Limits, LiveLimits: the settings of one destination, and those of them that every borrow reads without a lock and
// that an operator may change meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "pool/policy/strategy.h"

namespace carpool::pool {

// Settings of one destination ([pool] and its overrides).
struct Limits {
  std::uint32_t size = 64;  // maximum number of connections of all loops, dials included; exact
  // Bounds of a size that follows the load (pool/policy/size_controller.h); max_size 0: `size` is fixed.
  std::uint32_t min_size = 0, max_size = 0;
  std::uint32_t max_waiting = 1024;  // 0: fail at once if none is idle
  std::uint32_t max_usage = 0;       // 0: no limit
  bool single_use = false;           // one request per connection: as max_usage = 1, with the cause policy
  std::uint32_t max_tunnels = 0;     // maximum number of leases with want.tunnel; 0: no separate limit
  bool half_tunnels = false;         // max_tunnels is half of a size that follows the load
  Duration expire_time{};            // zero: never; jitter is applied per connection
  Duration idle_timeout{};           // zero: never
  // A dial without a waiter is cancelled if it takes longer than this and than four times the average dial.
  Duration surplus_dial_age = std::chrono::seconds(1);
  std::uint32_t min_idle = 0;  // number of idle connections to keep ready, as far as size allows
  bool learn_idle = true;      // retire before the origin's learned idle timeout (pool/policy/idle_limit_learner.h)
  // Streams expected of a new connection until the first one reports its limit: 1: not a session; 0: unknown (TLS whose
  // ALPN may choose either).
  std::uint32_t expected_streams = 1;
  Strategy strategy = Strategy::first;
  bool maximize = false;     // dial up to size even if an idle connection is available
  Duration quarantine{};     // minimum idle time between a release and the next borrow
  Duration max_cool_down{};  // longest pause that the origin may request; zero: none is made
  Evict evict = Evict::last_use;
  // Another pool has taken the origin: nothing is lent, waiters are refused, and connections close, the idle ones at
  // once.
  bool replaced = false;
  std::uint8_t classes = 0;  // priority classes, at most ClassQuota::kMaxClasses; fewer than 2: none

  bool auto_size() const { return max_size != 0; }
};

// relaxed: each limit is independent; a reader of an old value makes one more decision by it.
class LiveLimits {
 public:
  explicit LiveLimits(const Limits& limits) { set(limits); }
  void set(const Limits& limits) {
    max_usage_.store(limits.single_use ? 1 : limits.max_usage, std::memory_order_relaxed);
    min_idle_.store(limits.min_idle, std::memory_order_relaxed);
    single_use_.store(limits.single_use, std::memory_order_relaxed);
    idle_timeout_.store(limits.idle_timeout.count(), std::memory_order_relaxed);
    quarantine_.store(limits.quarantine.count(), std::memory_order_relaxed);
    strategy_.store(limits.strategy, std::memory_order_relaxed);
    maximize_.store(limits.maximize, std::memory_order_relaxed);
  }
  std::uint32_t max_usage() const { return max_usage_.load(std::memory_order_relaxed); }
  std::uint32_t min_idle() const { return min_idle_.load(std::memory_order_relaxed); }
  bool single_use() const { return single_use_.load(std::memory_order_relaxed); }
  Duration idle_timeout() const { return Duration(idle_timeout_.load(std::memory_order_relaxed)); }
  Duration quarantine() const { return Duration(quarantine_.load(std::memory_order_relaxed)); }
  Strategy strategy() const { return strategy_.load(std::memory_order_relaxed); }
  bool maximize() const { return maximize_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> max_usage_{0}, min_idle_{0};
  std::atomic<Strategy> strategy_{Strategy::first};
  std::atomic<bool> maximize_{false}, single_use_{false};
  std::atomic<Duration::rep> idle_timeout_{0}, quarantine_{0};
};

}  // namespace carpool::pool
