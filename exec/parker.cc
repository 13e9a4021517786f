#include "exec/parker.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace carpool::exec {
namespace {

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool Parker::consume() {
  std::uint32_t state = woken;
  // acquire pairs with the release in unpark().
  return state_.compare_exchange_strong(state, empty, std::memory_order_acquire, std::memory_order_relaxed);
}

bool Parker::park(Instant deadline, unsigned looks) {
  for (unsigned i = 0; i < looks; ++i) {
    if (state_.load(std::memory_order_relaxed) == woken) break;
    pause_briefly();
  }
  for (;;) {
    if (consume()) return true;
    if (deadline != kNever && Clock::now() >= deadline) return false;
    std::uint32_t state = empty;
    // Both this and unpark() are read-modify-writes of one word, so they are ordered: either unpark() sees `asleep` and
    // wakes, or this sees `woken` and does not sleep. relaxed: only consume() publishes anything.
    if (!state_.compare_exchange_strong(state, asleep, std::memory_order_relaxed)) continue;
    fall_asleep(deadline);
    state = asleep;
    state_.compare_exchange_strong(state, empty, std::memory_order_relaxed);
  }
}

void Parker::fall_asleep(Instant deadline) {
  timespec left{};
  if (deadline != kNever) {
    const auto ns = std::max<Duration>(deadline - Clock::now(), Duration::zero());
    left.tv_sec = static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(ns).count());
    left.tv_nsec = static_cast<long>((ns % std::chrono::seconds(1)).count());
  }
  // The caller checks every way in which it may return (woken, timed out, interrupted, changed meanwhile).
  static_assert(sizeof(state_) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, asleep, deadline == kNever ? nullptr : &left, nullptr, 0);
}

void Parker::unpark() {
  if (state_.exchange(woken, std::memory_order_release) != asleep) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace carpool::exec
