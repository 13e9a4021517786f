// Where a destination learns how long its origin lets a connection rest (pool/keepalive.h), and where it uses that.
#include <algorithm>

#include "pool/destination_impl.h"

namespace carpool::pool {

namespace {
// The origin counts from the last bytes it saw, which may be those of a health check.
Duration rest_for_origin(const Seat& seat, Instant now) {
  return now - std::max(seat.idle_since.get(), seat.alive_at.get());
}
}  // namespace

// It rested so long that the origin is about to close it; one that is left to the origin is not retired for that.
bool Destination::Impl::overdue(const Chair& entry, Instant now) const {
  const Duration most(horizon.load(std::memory_order_relaxed));
  if (most == Duration::max() || rest_for_origin(entry.value, now) <= most) return false;
  return !entry.value.left.load(std::memory_order_relaxed);
}

// Under the mutex, of one that rested too long: true when it stays, so that the origin shows how long it really waits.
bool Destination::Impl::leave_to_origin(Chair& entry, Instant now) {
  const Duration rested = rest_for_origin(entry.value, now);
  if (limits.idle_timeout > Duration::zero() && now - entry.value.idle_since.get() > limits.idle_timeout) {
    if (entry.value.left.load(std::memory_order_relaxed)) keep_alive.outlived(rested);
    return false;
  }
  if (keep_alive.retire()) return false;
  entry.value.left.store(true, std::memory_order_relaxed);
  return true;
}

// Under the mutex: the origin ended a resting connection in order. One that never served says nothing.
void Destination::Impl::learn_end(const Chair& entry, Instant now) {
  if (!limits.learn_idle || Word(entry.word.load(std::memory_order_relaxed)).uses() == 0) return;
  keep_alive.closed_by_origin(rest_for_origin(entry.value, now), entry.value.left.load(std::memory_order_relaxed), now);
  publish_horizon();
}

void Destination::Impl::publish_horizon() {
  horizon.store(keep_alive.horizon().count(), std::memory_order_relaxed);
}

Duration Destination::horizon() const {
  return Duration(impl_->horizon.load(std::memory_order_relaxed));
}

void Destination::hint_keep_alive(std::optional<Duration> timeout) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->limits.learn_idle) return;
  impl_->keep_alive.hint(timeout);
  impl_->publish_horizon();
}

void Destination::recall_idle(Duration limit) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->limits.learn_idle) return;
  impl_->keep_alive.recall(limit);
  impl_->publish_horizon();
}

// ---- what was observed ----

std::vector<Stay> Destination::history() const {
  std::vector<Stay> all;
  for (unsigned loop = 0; loop < impl_->loops; ++loop) impl_->histories[loop].read(all);
  return all;
}

void Destination::note_leak(LoopId loop) {
  LoopCounters::add(impl_->count(loop).leaks);
}

}  // namespace carpool::pool
