// Instant, Duration: monotonic time in nanoseconds; every deadline and every measurement is in it. WallTime: the time
// that other programs and people read, which may be set at any time.
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

using WallTime = std::chrono::system_clock::time_point;
using WallClock = WallTime (*)() noexcept;  // std::chrono::system_clock::now; tests have one that stands still

}  // namespace carpool
