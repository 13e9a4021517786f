// RetryBudget: token bucket that limits what retries add to an origin's load. A request deposits a fraction of a retry,
// a retry withdraws one; the bucket is large enough for the loss of one full set of connections. A restart of the
// origin is therefore fully masked, and a failing origin does not get every request twice. A retry that succeeds is
// refunded, because only the connection was stale, which no request should notice. After Finagle's RetryBudget, with a
// bucket instead of a window.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace carpool::proxy {

// Any loop. No other data depends on the number: relaxed throughout, no partner.
class RetryBudget {
 public:
  // `burst`: retries at once, also at the start. `percent`: deposited per hundred requests; 100: no limit. Must be
  // called before loops use it.
  void open(std::uint32_t burst, std::uint32_t percent) {
    percent_ = percent;
    most_ = static_cast<std::int64_t>(std::max(burst, kLeastPurse)) * kRetry;
    left_.store(most_, std::memory_order_relaxed);
  }

  // A full bucket is only read, so that loops share the cache line while nothing fails.
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
  // Refunds the retries of a request that succeeded.
  void refund(std::uint32_t retries) { left_.fetch_add(retries * kRetry, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kLeastPurse = 10;
  static constexpr std::int64_t kRetry = 100;  // in hundredths
  std::uint32_t percent_ = kRetry;
  std::int64_t most_ = 0;
  std::atomic<std::int64_t> left_{0};
};

}  // namespace carpool::proxy
