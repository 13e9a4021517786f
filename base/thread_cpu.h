// thread_cpu(): the processor time of the calling thread. Time in which the thread waits for a processor is not in it.
#pragma once

#include <ctime>

#include "base/clock.h"

namespace carpool {

inline Duration thread_cpu() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace carpool
