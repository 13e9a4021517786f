#include "exec/parker.h"

#include <algorithm>
#include <ctime>

#include "exec/futex.h"

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

bool Parker::park(Instant deadline, unsigned spins) {
  for (unsigned i = 0; i < spins; ++i) {
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
    wait_on_futex(deadline);
    state = asleep;
    state_.compare_exchange_strong(state, empty, std::memory_order_relaxed);
  }
}

void Parker::wait_on_futex(Instant deadline) {
  timespec left{};
  if (deadline != kNever) {
    const auto ns = std::max<Duration>(deadline - Clock::now(), Duration::zero());
    left.tv_sec = static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(ns).count());
    left.tv_nsec = static_cast<long>((ns % std::chrono::seconds(1)).count());
  }
  // The caller checks every way in which it may return (woken, timed out, interrupted, changed meanwhile).
  futex_wait(state_, asleep, deadline == kNever ? nullptr : &left);
}

void Parker::unpark() {
  if (state_.exchange(woken, std::memory_order_release) != asleep) return;
  futex_wake(state_);
}

}  // namespace carpool::exec
