// The pause that an origin requests with Retry-After: it holds the wait queue as an operator's pause does, ends by
// itself, and permits one lease, the trial, before all others.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

bool Destination::Impl::begin_cool_down(Duration wait, std::uint16_t status, Instant now) {
  DeferredActions actions;
  bool began = false;
  {
    const Held lock(mutex);
    if (stopped() || limits.max_cool_down <= Duration::zero()) return false;
    began = cool_down.begin(now, now + std::min(wait, limits.max_cool_down), status);
    if (began) ++ledger.cool_downs;
    mark_cooling();
    wake_for_trial(actions, now);
  }
  static_cast<void>(run_actions(actions));
  return began;
}

// Requests a wake-up for the end of the pause, or of the period that is reserved for a trial.
void Destination::Impl::wake_for_trial(DeferredActions& actions, Instant now) {
  const Instant at = cool_down.next();
  if (at == kNever) return;
  if (trial_wake > now && trial_wake <= at) return;  // requested already; that wake-up requests the next one
  trial_wake = at;
  actions.wake_at = std::min(actions.wake_at, at);
}

void Destination::Impl::end_cool_down() {
  if (cool_down.end()) mark_cooling();
}

// While kCooling is set, every borrow takes the mutex.
void Destination::Impl::mark_cooling() {
  if (cool_down.active()) {
    attention.fetch_or(kCooling, std::memory_order_seq_cst);
  } else {
    attention.fetch_and(~kCooling, std::memory_order_seq_cst);
  }
}

// The state of the predecessor's dials is not taken over: another identity or protocol may be what mends them.
void Destination::Impl::take_over_pauses(const Impl& predecessor) {
  CoolDown by_origin;
  std::optional<Pause> by_operator;
  {
    const Held lock(predecessor.mutex);
    by_origin = predecessor.cool_down;
    if (predecessor.paused()) by_operator = predecessor.active_pause;
  }
  const Held lock(mutex);
  if (by_operator) begin_pause(*by_operator);
  cool_down.take_over(by_origin);
  mark_cooling();
}

// The caller must serve the waiters afterwards.
void Destination::Impl::trial_over(std::uint32_t trial) {
  if (trial == 0) return;
  const Held lock(mutex);
  cool_down.trial_over(trial);
}

bool Destination::Impl::pass_trial(std::uint32_t trial, Instant now) {
  {
    const Held lock(mutex);
    if (!cool_down.passed(trial)) return false;
    mark_cooling();
  }
  serve_waiters(now);
  return true;
}

std::optional<Duration> Destination::Impl::cooling(Instant now) const {
  if (!is_cooling_down()) return std::nullopt;
  const Held lock(mutex);
  if (!cool_down.active()) return std::nullopt;
  return std::max(Duration::zero(), cool_down.until() - now);
}

}  // namespace carpool::pool
