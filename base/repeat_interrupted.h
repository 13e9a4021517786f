// repeat_interrupted(): repeats a system call that a signal interrupts. A watcher must not wait for the next event
// after such a call instead: readiness is edge-triggered, so the bytes that have arrived cause no further event. A
// blocking call with a timeout on its socket is interrupted by any signal, also by one whose handler restarts other
// calls.
#pragma once

#include <cerrno>

namespace carpool {

template <class Call>
auto repeat_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace carpool
