// Dialing ahead of demand: warm_up() and min_idle. The connections are dialed and counted as any others; any borrower
// may take them.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

std::uint32_t Destination::warm_up(std::uint32_t open, std::uint32_t most, Instant now, WarmUpEnd* end) {
  DeferredActions actions;
  std::uint32_t begun = 0;
  WarmUpEnd reason = WarmUpEnd::complete;
  {
    const Held lock(impl_->mutex);
    const std::uint32_t there = impl_->pool.in_use();
    if (impl_->stopped()) {
      reason = WarmUpEnd::stopped;
    } else if (open > there && impl_->paused()) {
      reason = WarmUpEnd::paused;
    } else if (open > there) {
      begun = impl_->open_ahead(std::min(open - there, most), OpenCause::warm_up, actions, now);
      if (begun == 0 && !impl_->pool.full()) reason = WarmUpEnd::no_slot;
    }
  }
  impl_->run_actions_and_serve(actions, now, OpenCause::all_busy);
  if (end != nullptr) *end = reason;
  return begun;
}

// Dials up to `count` connections within both caps. Returns the number of dials started.
std::uint32_t Destination::Impl::open_ahead(std::uint32_t count, OpenCause cause, DeferredActions& actions,
                                            Instant now) {
  for (std::uint32_t begun = 0; begun < count; ++begun) {
    if (!actions.step()) return begun;
    SlotEntry* entry = reserve(actions);
    if (entry == nullptr) return begun;
    record_dial(*entry, ProtocolMask::any, cause, actions, now);
  }
  return count;
}

// Called periodically, not on every change of the idle connections, and does nothing while dials fail. `dials_before`:
// the dials before missing_idle() counted: one that ended meanwhile may have opened a connection that it missed.
void Destination::Impl::keep_min_idle(std::uint32_t dials_before, DeferredActions& actions, Instant now) {
  if (limits.min_idle == 0 || stopped() || !lends() || backoff.blocks(now)) return;
  const std::uint32_t missing = missing_seen, dials = std::max(dials_before, supply.dials()),
                      coming_up = dials > queue.size() ? dials - queue.size() : 0;
  if (coming_up < missing)
    open_ahead(std::min(missing - coming_up, allowed_dials(now)), OpenCause::min_idle, actions, now);
}

// Returns the number of idle connections missing for min_idle at this moment.
std::uint32_t Destination::Impl::missing_idle() const {
  if (live.min_idle() == 0) return 0;
  return missing_idle(UINT32_MAX).value_or(0);
}

// Returns nullopt if more than `most` had to be examined.
std::optional<std::uint32_t> Destination::Impl::missing_idle(std::uint32_t most) const {
  const std::uint32_t wanted = live.min_idle();
  const std::uint32_t ended = pending.probes_ended();
  std::uint32_t ready = pending.inspecting(), examined = 0;
  static_cast<void>(pool.find_idle(0, [&](const SlotEntry& entry) {
    ready += EntryWord(entry.word.load(std::memory_order_acquire)).idle() ? 1 : 0;
    return ready >= wanted || ++examined == most;
  }));
  if (ready >= wanted) return 0;
  if (examined == most) return std::nullopt;
  ready += pending.probing_since(ended);
  return wanted > ready ? wanted - ready : 0;
}

// Returns the same between two sweeps, with a bounded search.
std::uint32_t Destination::Impl::missing_idle_now() const {
  if (limits.min_idle == 0) return 0;
  return missing_idle(DeferredActions::kMaxSteps).value_or(missing_seen);
}

}  // namespace carpool::pool
