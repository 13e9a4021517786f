#include "proxy/commands/demo/stop_signal.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>

namespace carpool::proxy {

Result<StopSignal> StopSignal::make() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd) return StopSignal(std::move(fd));
  return Fault(FaultKind::budget, Side::self, "eventfd: " + std::generic_category().message(errno));
}

void StopSignal::raise() const {
  const std::uint64_t one = 1;
  // The only possible error is a full counter, which means that the signal was already raised.
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
}

bool StopSignal::wait_until(Instant deadline) const {
  for (;;) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready == 1) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;  // otherwise a signal, or a wait longer than INT_MAX
  }
}

int milliseconds_until(Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

}  // namespace carpool::proxy
