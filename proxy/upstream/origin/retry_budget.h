// Retries to one origin: RetryConditions, the cases that an operator permits in addition to those proven safe, and
// RetryBudget, which limits their number.
//
// RetryBudget: a token bucket that limits the load that retries add to an origin. It counts retries of idempotent
// requests on reused connections that closed before a response byte, and retries by the conditions. Requests that the
// origin declares unprocessed (GOAWAY, REFUSED_STREAM) are retried without it. Each request deposits a fraction of a
// retry; each retry withdraws one. The bucket holds as many retries as a pool has connections, or a session streams, so
// the restart of an origin is masked, but a failing origin does not receive every request twice. If a retried request
// gets a status below 500, its retries after closed connections are refunded, because only those connections were
// stale. After Finagle's RetryBudget, with a bucket instead of a window.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/upstream/origin/continued_count.h"

namespace carpool::proxy {

// RetryConditions: request.retry_on of one origin.
class RetryConditions final {
 public:
  RetryConditions() = default;
  explicit RetryConditions(const std::vector<std::string>& words) {  // validated with the configuration
    for (const std::string& word : words) {
      if (word == "reset") {
        reset_ = true;
      } else if (word == "connect-failure") {
        connect_failure_ = true;
      } else {
        statuses_.set(word == "retriable-4xx" ? 409 - kFirst : std::stoul(word) - kFirst);
      }
    }
  }
  bool status(std::uint16_t code) const {
    return code >= kFirst && code < kFirst + kStatuses && statuses_[std::size_t{code} - kFirst];
  }
  bool reset() const { return reset_; }
  bool connect_failure() const { return connect_failure_; }

 private:
  static constexpr std::size_t kFirst = 400, kStatuses = 200;
  std::bitset<kStatuses> statuses_;
  bool reset_ = false, connect_failure_ = false;
};

// Any loop. No other data depends on the count: relaxed throughout, no partner.
class RetryBudget {
 public:
  // `burst`: size of the full bucket, in retries; at least kMinBurst. `percent`: retries deposited per hundred
  // requests; 100: no limit. Must be called before loops use it.
  void open(std::uint32_t burst, std::uint32_t percent) {
    percent_ = percent;
    most_ = static_cast<std::int64_t>(std::max(burst, kMinBurst)) * kRetry;
    left_->store(most_, std::memory_order_relaxed);
  }

  // As RateLimiter::follow(): a reload that changes other settings does not fill the bucket.
  void follow(RetryBudget& before, bool outlives) {
    if (percent_ != before.percent_ || most_ != before.most_) return;
    left_.follow(before.left_, outlives);
  }

  // A full bucket is only read, so that loops share its cache line while no request is retried.
  void deposit() {
    if (left_->load(std::memory_order_relaxed) < most_) left_->fetch_add(percent_, std::memory_order_relaxed);
  }
  bool withdraw() {
    if (percent_ >= kRetry) return true;
    std::int64_t left = left_->load(std::memory_order_relaxed);
    do {
      if (left < kRetry) return false;
    } while (!left_->compare_exchange_weak(left, left - kRetry, std::memory_order_relaxed));
    return true;
  }
  // Refunds the retries of a request that succeeded. Deposits since the withdrawal may leave the bucket above its size.
  void refund(std::uint32_t retries) { left_->fetch_add(retries * kRetry, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kMinBurst = 10;
  static constexpr std::int64_t kRetry = 100;  // one retry, in units of left_
  std::uint32_t percent_ = kRetry;
  std::int64_t most_ = 0;
  ContinuedCount left_;
};

}  // namespace carpool::proxy
