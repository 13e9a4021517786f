// RateLimiter: so many a second and so many at once, for all loops together. The generic cell rate algorithm (ITU-T
// I.371): one number, the instant at which all that was let through will have been paid for. Who comes is due when that
// instant is no more than a burst ahead; it moves on by one interval for everybody let through.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/clock.h"

namespace carpool::proxy {

// Any loop. Nothing else hangs on the number: relaxed throughout, no partner; the CAS alone keeps the rate exact.
class RateLimiter {
 public:
  // Before loops see it. `rate`: a second; 0: no limit. `burst`: at once; 0: a second's worth.
  void open(std::uint32_t rate, std::uint32_t burst) {
    if (rate == 0) return;
    interval_ = Duration(std::chrono::seconds(1)).count() / rate;
    ahead_ = interval_ * ((burst == 0 ? rate : burst) - 1);
  }

  // In how long one more is due: at once, later, or, nothing, not within `patience`. Whoever gets an answer has its
  // place. Loops' clocks may differ by a turn.
  std::optional<Duration> delay_until_allowed(Instant now, Duration patience) {
    if (interval_ == 0) return Duration::zero();
    const std::int64_t at = now.time_since_epoch().count();
    std::int64_t paid = paid_.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t from = std::max(paid, at);
      const std::int64_t wait = std::max<std::int64_t>(0, from - at - ahead_);
      if (wait > patience.count()) return std::nullopt;
      if (paid_.compare_exchange_weak(paid, from + interval_, std::memory_order_relaxed)) return Duration(wait);
    }
  }
  bool take(Instant now) { return delay_until_allowed(now, Duration::zero()).has_value(); }

 private:
  std::int64_t interval_ = 0, ahead_ = 0;  // nanoseconds
  std::atomic<std::int64_t> paid_{0};
};
static_assert(std::is_same_v<Duration::period, std::nano>);

}  // namespace carpool::proxy
