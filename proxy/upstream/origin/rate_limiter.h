// RateLimiter: limits rate and burst over all loops by the generic cell rate algorithm (ITU-T I.371). Its only variable
// is the theoretical arrival time: the instant at which, at the limit's rate, the next event would be due. An event is
// admitted if that time is less than a burst ahead; each admission advances it by one interval.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/clock.h"
#include "proxy/upstream/origin/continued_count.h"

namespace carpool::proxy {

// Any loop. No other data depends on the number: relaxed throughout, no partner. The CAS keeps the rate exact.
class RateLimiter {
 public:
  // Must be called before loops use it. `rate`: events per second; 0 for no limit. `burst`: maximum events at one
  // instant; 0 for `rate`.
  void open(std::uint32_t rate, std::uint32_t burst) {
    if (rate == 0) return;
    interval_ = Duration(std::chrono::seconds(1)).count() / rate;
    tolerance_ = interval_ * ((burst == 0 ? rate : burst) - 1);
  }

  // Continues the count of `before` if the limits are the same: a reload that changes other settings permits no second
  // burst. `outlives`: see ContinuedCount::follow().
  void follow(RateLimiter& before, bool outlives) {
    if (interval_ != before.interval_ || tolerance_ != before.tolerance_) return;
    arrival_.follow(before.arrival_, outlives);
  }

  // Reserves an admission and returns the delay until it is due, or nullopt if that exceeds `timeout`. The clocks of
  // loops may differ by a turn.
  std::optional<Duration> delay_until_allowed(Instant now, Duration timeout) {
    if (interval_ == 0) return Duration::zero();
    const std::int64_t at = now.time_since_epoch().count();
    std::int64_t arrival = arrival_->load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t from = std::max(arrival, at);
      const std::int64_t wait = std::max<std::int64_t>(0, from - at - tolerance_);
      if (wait > timeout.count()) return std::nullopt;
      if (arrival_->compare_exchange_weak(arrival, from + interval_, std::memory_order_relaxed)) return Duration(wait);
    }
  }
  bool admit(Instant now) { return delay_until_allowed(now, Duration::zero()).has_value(); }

 private:
  std::int64_t interval_ = 0, tolerance_ = 0;  // nanoseconds; interval_ 0: no limit
  ContinuedCount arrival_;                     // the theoretical arrival time
};
static_assert(std::is_same_v<Duration::period, std::nano>);

}  // namespace carpool::proxy
