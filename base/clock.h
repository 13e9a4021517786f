// Instant, Duration: monotonic time in nanoseconds, never the wall clock.
//
// An operation takes `now` once and passes it down (SimplePool's time-freezing), so its decisions agree about the time.
// A loop reads the clock once per turn, and the code of a request gets that time as an argument. Code of other threads
// reads the clock itself.
#pragma once

#include <chrono>

namespace carpool {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Duration = Clock::duration;

inline constexpr Instant kNever = Instant::max();

// The deadline `after` from `now`; kNever if `after` is zero or negative.
constexpr Instant deadline_after(Instant now, Duration after) {
  return after <= Duration::zero() ? kNever : now + after;
}

}  // namespace carpool
