// Time as the house knows it: monotonic, nanoseconds, never the wall clock.
//
// An operation takes `now` once and passes it down (SimplePool's time-freezing): two decisions of one
// operation can never disagree about the time. Only a Loop reads the clock; everything else is told.
#pragma once

#include <chrono>

namespace carpool {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Duration = Clock::duration;

inline constexpr Instant kNever = Instant::max();

// A deadline `after` from `now`; zero or negative means that there is none.
constexpr Instant deadline_after(Instant now, Duration after) {
  return after <= Duration::zero() ? kNever : now + after;
}

}  // namespace carpool
