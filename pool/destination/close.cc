// Closing: every way in which a connection leaves the pool, and the deferred actions that follow a decision.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// Disposes of ended connections first: their places become free only after that.
bool Destination::Impl::run_actions(DeferredActions& actions) {
  bool freed = false;
  while (SlotEntry* entry = actions.ended.pop()) {
    if (entry->value.pooled != nullptr) {  // a session: its home loop may be using it
      environment.deliver(EntryWord(entry->word.load(std::memory_order_relaxed)).home(), entry->value.dispose_message);
      continue;
    }
    if (entry->value.ended != nullptr)
      environment.dispose(std::exchange(entry->value.ended, nullptr), entry->value.closed);
    release_slot(*entry);
    freed = true;
  }
  while (Grant* grant = actions.grants.pop()) {
    if (grant->moved) environment.detach(*grant->entry->value.pooled, grant->from);
    environment.deliver(grant->to, *grant);  // from here on it belongs to the borrower
  }
  while (SlotEntry* entry = actions.dials.pop()) {
    const std::uint32_t generation = EntryWord(entry->word.load(std::memory_order_relaxed)).generation();
    const OpenCause cause = entry->value.opened.load(std::memory_order_relaxed);
    environment.dial(self, Reservation(entry->index, generation, cause, entry->value.asked));
  }
  while (CancelDialMessage* message = actions.cancels.pop()) environment.deliver(message->to, *message);
  while (Rejection* rejection = actions.rejections.pop()) environment.deliver(rejection->to, *rejection);
  if (actions.wake_at != kNever) environment.wake_at(self, std::exchange(actions.wake_at, kNever));
  return freed;
}

// Frees the place of a connection that was disposed of. The caller then serves waiters, which reads `attention`.
void Destination::Impl::release_slot(SlotEntry& entry) {
  pool.vacate(entry);
  pending.disposal_ended();
  if (budget == nullptr) return;
  budget->put_back();
  budget->pending_release_ended();
}

void Destination::Impl::run_actions_and_serve(DeferredActions& actions, Instant now, OpenCause why) {
  if (run_actions(actions) || actions.more) serve_own_waiters(now, why);
  serve_starved(now);
}

// The caller must own the entry: as a lease, as the winner of its CAS, or as its dial.
void Destination::Impl::end(SlotEntry& entry, CloseCause cause, DeferredActions& actions) {
  CARPOOL_ASSERT(pool.close(entry));
  record_close(entry, cause, actions);
}

// Returns false if another thread took or closed it first.
bool Destination::Impl::end_idle(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions) {
  if (!pool.close_idle(entry, seen)) return false;
  record_close(entry, cause, actions);
  return true;
}

void Destination::Impl::record_close(SlotEntry& entry, CloseCause cause, DeferredActions& actions) {
  Slot& slot = entry.value;
  ledger.close(cause);
  pending.disposal_begun();
  if (budget != nullptr) budget->note_pending_release();
  // The end of a dial is recorded already: Supply::dial_failed().
  if (slot.pooled != nullptr) supply.closed(protocol_of(entry), std::exchange(slot.draining, false));
  uncount_local(entry);
  if (std::exchange(slot.replace, false)) --replacement.marked;
  review();
  // A session stays in its slot until its home loop disposes of it.
  if (protocol_of(entry) == Protocol::h1) slot.ended = std::exchange(slot.pooled, nullptr);
  slot.closed = cause;
  if (slot.tunnel.exchange(false, std::memory_order_relaxed)) tunnelling.fetch_sub(1, std::memory_order_relaxed);
  actions.ended.push(entry);
}

// Ends a connection that a search found expired: an idle one closes, a session in use drains.
bool Destination::Impl::end_expired(SlotEntry& entry, EntryWord seen, CloseCause cause, DeferredActions& actions) {
  if (!seen.borrowed()) return end_idle(entry, seen, cause, actions);
  if (EntryWord(entry.word.load(std::memory_order_acquire)).generation() != seen.generation()) return false;
  drain(entry, cause, actions);
  return true;
}

void Destination::Impl::discard(SlotEntry& entry, CloseCause cause, Instant now) {
  if (protocol_of(entry) == Protocol::h2) return release_and_drain(entry, cause, SessionEnd::broken, now);
  DeferredActions actions;
  {
    const Held lock(mutex);
    end(entry, cause, actions);
  }
  run_actions_and_serve(actions, now, replaces(cause));
}

// Called periodically, from one loop.
void Destination::Impl::sweep(Instant now) {
  end_pause_in_time(now);
  follow_load(now);
  const std::optional<std::uint32_t> need = measured_need(now);
  end_all_expired(now);
  if (need) trim(*need);
  std::uint32_t dials_before = 0;
  {
    const Held lock(mutex);
    dials_before = supply.dials();
  }
  const std::uint32_t missing = missing_idle();
  DeferredActions actions;
  {
    const Held lock(mutex);
    missing_seen = missing;
    cancel_lasting_surplus(actions, now);
    keep_alive.evaluate(now);
    swept_at = now;
    publish_effective_limit();
    keep_min_idle(dials_before, actions, now);
  }
  static_cast<void>(run_actions(actions));
  serve_waiters(now);
}

void Destination::Impl::stop(Instant now) {
  {
    const Held lock(mutex);
    // From now on every borrow and release takes the mutex and sees it: see `attention`.
    attention.fetch_or(kStopped, std::memory_order_seq_cst);
  }
  refuse_all(make_fault(FaultKind::draining, Side::self, "the pool is stopping"));
  end_all_idle(CloseCause::shutdown);
  serve_starved(now);
}

// ---- readiness ----

EventClaim claim_event(std::uint32_t index, std::uint32_t generation, LoopId here) {
  EntryBase* core = EntryIndex::process().find(index);
  if (core == nullptr) return {};
  SlotEntry& entry = static_cast<SlotEntry&>(*core);
  for (;;) {
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (!matches(word, generation, here) || word.vacant() || word.reserved()) return {};
    Slot& slot = entry.value;
    if (protocol_of(entry) == Protocol::h2) return {EventClaim::Kind::session, slot.pooled, &slot.owner->self};
    // In use, or granted to a borrower of this loop: no other thread touches it.
    if (word.borrowed() || word.inspecting()) return {EventClaim::Kind::in_use, slot.pooled, &slot.owner->self};
    Destination::Impl& owner = *slot.owner;
    owner.pending.inspection_begun();                  // before the entry is taken: see PendingPlaces
    if (!try_inspect(entry.word, generation, here)) {  // taken, closed or moved meanwhile: retry
      owner.pending.inspection_ended();
      owner.inspection_lost();
      continue;
    }
    entry.block->idle(here).clear(entry.bit());
    return {EventClaim::Kind::inspecting, slot.pooled, &slot.owner->self};
  }
}

void keep_inspected(std::uint32_t index, Instant now) {
  SlotEntry& entry = static_cast<SlotEntry&>(*EntryIndex::process().find(index));
  entry.value.owner->keep_inspected(entry, now);
}

void close_inspected(std::uint32_t index, CloseCause cause, Instant now, OriginClose how) {
  SlotEntry& entry = static_cast<SlotEntry&>(*EntryIndex::process().find(index));
  entry.value.owner->close_inspected(entry, cause, now, how);
}

void Destination::Impl::keep_inspected(SlotEntry& entry, Instant now) {
  const Change change = end_inspect(entry.word, InspectionEnd::idle);
  CARPOOL_ASSERT(change);
  pool.publish(entry, change.after.home());
  pending.inspection_ended();  // after it is idle: after_idle() serves waiters that relied on the count
  after_idle(&entry, now);
}

void Destination::Impl::close_inspected(SlotEntry& entry, CloseCause cause, Instant now, OriginClose how) {
  DeferredActions actions;
  {
    const Held lock(mutex);
    if (cause == CloseCause::peer_closed) learn_idle_close(entry, how, now);
    CARPOOL_ASSERT(end_inspect(entry.word, InspectionEnd::closed));
    record_close(entry, cause, actions);
    pending.inspection_ended();
  }
  run_actions_and_serve(actions, now, replaces(cause));
}

// Serves the waiters that relied on a counted inspection that did not begin, as of the last pass over them.
void Destination::Impl::inspection_lost() {
  if (waiting()) serve_waiters(Instant(Duration(planned_at.load(std::memory_order_relaxed))));
}

}  // namespace carpool::pool
