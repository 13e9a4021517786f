// The destination's use of IdleLimitLearner: reports when the origin closes connections, and applies the learned limit.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

static_assert(BorrowRequest::kOnlyNew == IdleLimitLearner::kOnlyNew);

namespace {
// Returns the idle time since the last bytes that the origin received, which may be those of a health check.
Duration idle_time_at_origin(const Slot& slot, Instant now) {
  return now - std::max(slot.idle_since.get(), slot.alive_at.get());
}
}  // namespace

// Returns true if the origin is about to close the connection, unless it is left to the origin.
bool Destination::Impl::past_idle_limit(const SlotEntry& entry, Instant now) const {
  const Duration most(effective_limit.load(std::memory_order_relaxed));
  if (most == Duration::max() || idle_time_at_origin(entry.value, now) <= most) return false;
  return !entry.value.idle_probe.load(std::memory_order_relaxed);
}

// Returns true if the connection is kept, to measure how long the origin really waits.
bool Destination::Impl::leave_to_origin(SlotEntry& entry, Instant now) {
  const Duration idle_for = idle_time_at_origin(entry.value, now);
  if (limits.idle_timeout > Duration::zero() && now - entry.value.idle_since.get() > limits.idle_timeout) {
    if (entry.value.idle_probe.load(std::memory_order_relaxed)) keep_alive.outlived(idle_for);
    return false;
  }
  if (keep_alive.retire()) return false;
  entry.value.idle_probe.store(true, std::memory_order_relaxed);
  return true;
}

// Learns that the origin closed a connection idle for `idle_for` after `served` requests. A connection that never
// served is not evidence, nor is one that was reused several times and then closed at once: idleness was not the
// reason.
void Destination::Impl::learn_end(const SlotEntry& entry, Duration idle_for, std::uint32_t served, OriginClose how,
                                  Instant now) {
  if (!limits.learn_idle || served == 0) return;
  idle_for = std::max(idle_for, Duration::zero());  // `now` may be another loop's time
  if (served >= IdleLimitLearner::kKeptAlive && idle_for <= IdleLimitLearner::kAtOnce) return;
  if (how == OriginClose::in_order) {
    keep_alive.closed_by_origin(idle_for, entry.value.idle_probe.load(std::memory_order_relaxed), now);
  } else {
    keep_alive.reset_by_origin(idle_for, now);
  }
  publish_effective_limit();
}

// Learns from a connection that the origin closed while it was idle.
void Destination::Impl::learn_idle_close(const SlotEntry& entry, OriginClose how, Instant now) {
  const std::uint32_t served = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  learn_end(entry, idle_time_at_origin(entry.value, now), served, how, now);
}

// Learns from a connection that the origin closed before the first response byte: the preceding idle time was too long.
void Destination::Impl::learn_end_in_use(const SlotEntry& entry, Instant leased, std::uint32_t served, Instant now) {
  const Held lock(mutex);
  learn_end(entry, idle_time_at_origin(entry.value, leased), served, OriginClose::in_order, now);
}

// Learns from a connection that the origin closed right after the response: no idle time.
void Destination::Impl::learn_close_after_response(const SlotEntry& entry, Instant now) {
  const Held lock(mutex);
  learn_end(entry, Duration::zero(), EntryWord(entry.word.load(std::memory_order_relaxed)).uses(),
            OriginClose::in_order, now);
}

// Counts an idle connection once, when it is first seen alive beyond refutation_limit().
void Destination::Impl::note_survivor(const SlotEntry& entry, std::uint32_t served, Duration limit, Instant now) {
  const Duration idle_for = idle_time_at_origin(entry.value, now);
  if (served != 0 && idle_for > limit && idle_for - (now - swept_at) <= limit) keep_alive.survived(idle_for);
}

// While nothing is learned, nothing would refute what was learned before.
void Destination::Impl::forget_idle_limit() {
  keep_alive = {};
  publish_effective_limit();
}

void Destination::Impl::publish_effective_limit() {
  effective_limit.store(keep_alive.effective_limit().count(), std::memory_order_relaxed);
  trust.store(keep_alive.trust().count(), std::memory_order_relaxed);
}

Duration Destination::effective_limit() const {
  return Duration(impl_->effective_limit.load(std::memory_order_relaxed));
}

Duration Destination::trust() const {
  return Duration(impl_->trust.load(std::memory_order_relaxed));
}

void Lease::note_no_response(Instant now) {
  if (kept_uses_ != 0) return;  // the pool does not know how long the connection was idle
  destination_->impl_->learn_end_in_use(*entry_, leased_at_, uses_before_, now);
}

void Destination::hint_keep_alive(std::optional<Duration> timeout) {
  const Held lock(impl_->mutex);
  if (!impl_->limits.learn_idle) return;
  impl_->keep_alive.hint(timeout);
  impl_->publish_effective_limit();
}

void Destination::restore_idle_limit(Duration limit) {
  const Held lock(impl_->mutex);
  if (!impl_->limits.learn_idle) return;
  impl_->keep_alive.restore(limit);
  impl_->publish_effective_limit();
}

// ---- observations ----

std::vector<BorrowRecord> Destination::history() const {
  std::vector<BorrowRecord> all;
  for (unsigned loop = 0; loop < impl_->loops; ++loop) impl_->histories[loop].read(all);
  return all;
}

void Destination::note_leak(LoopId loop) {
  impl_->count(loop).leak();
}

}  // namespace carpool::pool
