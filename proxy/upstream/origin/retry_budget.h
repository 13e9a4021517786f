// RetryBudget: bounds what retries add to an origin's load. A request earns a fraction of a retry, a retry costs one;
// what was not spent is kept up to a purse that one lost set of connections fits in. So a restart of the origin is
// survived whole, and an origin that keeps failing is not asked twice for everything. What a retry cost comes back when
// it was answered: then only the connection had been stale, which no request may notice. After Finagle's RetryBudget,
// with a purse instead of a window.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace carpool::proxy {

// Any loop. One number that nothing else hangs on: relaxed throughout, no partner.
class RetryBudget {
 public:
  // `burst`: retries at once, and at the start. `percent`: earned by each hundred requests; 100: no bound.
  // Before loops see it.
  void open(std::uint32_t burst, std::uint32_t percent) {
    percent_ = percent;
    most_ = static_cast<std::int64_t>(std::max(burst, kLeastPurse)) * kRetry;
    left_.store(most_, std::memory_order_relaxed);
  }

  // A full purse is only read: no loop disturbs another while nothing fails.
  void deposit() {
    if (left_.load(std::memory_order_relaxed) < most_) left_.fetch_add(percent_, std::memory_order_relaxed);
  }
  bool withdraw() {
    if (percent_ >= kRetry) return true;
    std::int64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (left < kRetry) return false;
    } while (!left_.compare_exchange_weak(left, left - kRetry, std::memory_order_relaxed));
    return true;
  }
  // Retries of one request that was answered after all.
  void refund(std::uint32_t retries) { left_.fetch_add(retries * kRetry, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kLeastPurse = 10;
  static constexpr std::int64_t kRetry = 100;  // in hundredths
  std::uint32_t percent_ = kRetry;
  std::int64_t most_ = 0;
  std::atomic<std::int64_t> left_{0};
};

}  // namespace carpool::proxy
