// wall_clock_offset(): converts the time of a loop to the wall clock, for logs and spans.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace carpool::proxy {

// Returns the difference from an Instant to the time since 1970. It must be read again from time to time, because the
// wall clock may be set at any time.
inline Duration wall_clock_offset() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()) -
         Clock::now().time_since_epoch();
}

}  // namespace carpool::proxy
