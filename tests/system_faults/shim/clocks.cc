// Clocks that are ahead of the system's, or behind it. A wait until a time of such a clock is translated back.
#include <pthread.h>
#include <sys/time.h>

#include <ctime>

#include "control.h"

namespace {

constexpr long kSecond = 1'000'000'000;

std::int64_t ahead(clockid_t clock) {
  const system_faults::Control* at = system_faults::control();
  if (at == nullptr) return 0;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) return static_cast<std::int64_t>(at->realtime.load());
  const bool steady = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
  return steady ? static_cast<std::int64_t>(at->monotonic.load()) : 0;
}

timespec moved(const timespec& time, std::int64_t by) {
  const std::int64_t nanoseconds = time.tv_sec * kSecond + time.tv_nsec + by;
  return {nanoseconds / kSecond, nanoseconds % kSecond};
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* into) noexcept {
  SYSTEM_FAULTS_NEXT(clock_gettime);
  const int status = next(clock, into);
  if (status == 0) *into = moved(*into, ahead(clock));
  return status;
}

int gettimeofday(timeval* into, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *into = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  SYSTEM_FAULTS_NEXT(pthread_cond_clockwait);
  const timespec systems = moved(*until, -ahead(clock));
  return next(condition, mutex, clock, &systems);
}

}  // extern "C"
