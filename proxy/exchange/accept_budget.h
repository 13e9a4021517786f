// AcceptBudget: the number of clients that may be accepted before the descriptors in use must be counted again.
// Descriptors below the mark at which idle connections are closed are for clients; the others are for connections to
// origins.
//
// A count grants half of the descriptors left, because each client may also need a connection to an origin. It grants a
// minimum, so that not every accept has to count.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "proxy/exchange/load_shedding.h"
#include "proxy/telemetry/resource_usage.h"

namespace carpool::proxy {

class AcceptBudget {
 public:
  // Percentage of the descriptors that are for clients if close_idle is 0.
  static constexpr std::uint32_t kForClients = 97;

  // Returns how many clients may be accepted after a count of `use`.
  static std::int64_t grant(const Use& use, const Watermarks& marks) {
    if (use.limit == 0) return kUnlimited;
    const std::uint64_t percent = marks.idle == 0 ? kForClients : std::min(marks.idle, kForClients);
    const std::uint64_t most = use.limit * percent / 100;
    if (use.used >= most) return 0;
    const std::uint64_t left = most - use.used;
    return static_cast<std::int64_t>(std::max(left / 2, std::min(left, use.limit / kCounts + 1)));
  }

  // Any thread. Returns false if the budget is used up and descriptors must be counted.
  bool withdraw() { return left_.fetch_sub(1, std::memory_order_relaxed) > 0; }
  void set(std::int64_t left) { left_.store(left, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kUnlimited = 1 << 20;
  static constexpr std::uint64_t kCounts = 256;
  // relaxed: publishes nothing else. Two loops that count at the same time grant the same descriptors twice, which is
  // why a count grants half.
  std::atomic<std::int64_t> left_{0};
};

}  // namespace carpool::proxy
