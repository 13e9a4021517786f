// Limits: the settings of one destination, and the part of them that is read on every borrow, which an operator may
// change while it is read.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

// Who goes when a place is needed elsewhere: who rested longest, or who served least.
enum class Evict : std::uint8_t { last_use, least_used };

// Settings of one destination ([pool] and its overrides).
struct Limits {
  std::uint32_t size = 64;           // most connections, all loops together, dialing ones included; exact
  std::uint32_t max_waiting = 1024;  // 0: fail at once when none is free
  std::uint32_t max_usage = 0;       // 0: no limit
  std::uint32_t max_tunnels = 0;     // at most so many leases with want.tunnel; 0: no limit of their own
  Duration expire_time{};            // zero: never; jitter is applied per connection
  Duration idle_timeout{};           // zero: never
  // A dial that nobody waits for is given up when it takes longer than this, and than four times a usual one.
  Duration dial_patience = std::chrono::seconds(1);
  std::uint32_t min_idle = 0;  // so many are kept ready, as far as size allows
  bool learn_idle = true;  // retire before the origin's own limit, once it is known (pool/policy/idle_limit_learner.h)
  // Streams that a new connection is expected to give until the first one says it: 1: it is no session; 0: not known
  // (TLS whose ALPN may choose either).
  std::uint32_t expected_streams = 1;
  Strategy strategy = Strategy::first;
  bool maximize = false;  // open up to size though something idle would do
  Duration quarantine{};  // rest after a release before the next borrow
  Evict evict = Evict::last_use;
  std::uint8_t classes = 0;  // priority classes, ClassQuota::kMostClasses at most; fewer than 2: none
};

// relaxed: each is a limit of its own, and who reads an old one judges once more by it.
class LiveLimits {
 public:
  explicit LiveLimits(const Limits& limits) { set(limits); }
  void set(const Limits& limits) {
    max_usage_.store(limits.max_usage, std::memory_order_relaxed);
    idle_timeout_.store(limits.idle_timeout.count(), std::memory_order_relaxed);
    quarantine_.store(limits.quarantine.count(), std::memory_order_relaxed);
    strategy_.store(limits.strategy, std::memory_order_relaxed);
    maximize_.store(limits.maximize, std::memory_order_relaxed);
  }
  std::uint32_t max_usage() const { return max_usage_.load(std::memory_order_relaxed); }
  Duration idle_timeout() const { return Duration(idle_timeout_.load(std::memory_order_relaxed)); }
  Duration quarantine() const { return Duration(quarantine_.load(std::memory_order_relaxed)); }
  Strategy strategy() const { return strategy_.load(std::memory_order_relaxed); }
  bool maximize() const { return maximize_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> max_usage_{0};
  std::atomic<Strategy> strategy_{Strategy::first};
  std::atomic<bool> maximize_{false};
  std::atomic<Duration::rep> idle_timeout_{0}, quarantine_{0};
};

}  // namespace carpool::pool
