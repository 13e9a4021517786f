// Every way out of the pool, and the errands that follow a decision.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// No lock is held. What ended is given up first, so that its place is free only when it is really gone.
bool Destination::Impl::perform(Errands& work) {
  bool freed = false;
  while (Chair* entry = work.ended.pop()) {
    if (entry->value.pooled != nullptr) {  // a session: its home loop may be inside it
      house.deliver(Word(entry->word.load(std::memory_order_relaxed)).home(), entry->value.farewell);
      continue;
    }
    if (entry->value.ended != nullptr) house.dispose(std::exchange(entry->value.ended, nullptr), entry->value.closed);
    give_up(*entry);
    freed = true;
  }
  while (Grant* grant = work.grants.pop()) {
    if (grant->moved) house.detach(*grant->entry->value.pooled, grant->from);
    house.deliver(grant->to, *grant);  // from here on it is the borrower's
  }
  while (Chair* entry = work.dials.pop()) {
    const std::uint32_t generation = Word(entry->word.load(std::memory_order_relaxed)).generation();
    const Opened cause = entry->value.opened.load(std::memory_order_relaxed);
    house.dial(self, Reservation(entry->index, generation, cause, entry->value.asked));
  }
  while (Recall* recall = work.recalls.pop()) house.deliver(recall->entry->value.dialed_on, *recall);
  while (Refusal* refusal = work.refusals.pop()) house.deliver(refusal->to, *refusal);
  if (work.wake_at != kNever) house.wake_at(self, std::exchange(work.wake_at, kNever));
  if (work.hungry) budget->register_starved(*this);
  return freed;
}

// What was in it is gone: its place is free. Then the caller attends, which reads `attention`.
void Destination::Impl::give_up(Chair& entry) {
  pool.vacate(entry);
  ending.fetch_sub(1, std::memory_order_seq_cst);
  if (budget == nullptr) return;
  budget->pending_release_ended();
  budget->put_back();
}

void Destination::Impl::finish(Errands& work, Instant now, Opened why) {
  if (perform(work) || work.more) attend_own(now, why);
  serve_starved(now);
}

// Under the mutex, by the owner: a lease, or the winner of the entry, or its dial.
void Destination::Impl::end(Chair& entry, Closed cause, Errands& work) {
  CARPOOL_ASSERT(pool.close(entry));
  book_end(entry, cause, work);
}

// Under the mutex. False: somebody else was faster.
bool Destination::Impl::end_idle(Chair& entry, Word seen, Closed cause, Errands& work) {
  if (!pool.close_idle(entry, seen)) return false;
  book_end(entry, cause, work);
  return true;
}

void Destination::Impl::book_end(Chair& entry, Closed cause, Errands& work) {
  Seat& seat = entry.value;
  ledger.close(cause);
  ending.fetch_add(1, std::memory_order_relaxed);
  if (budget != nullptr) budget->note_pending_release();
  if (seat.pooled != nullptr && !std::exchange(seat.draining, false)) {
    --held[static_cast<std::size_t>(kind_of(entry))];
  } else if (seat.pooled != nullptr) {
    --draining;
  }
  uncount_local(entry);
  --alive;
  if (std::exchange(seat.old, false)) --old_ones;
  review();
  // A session stays in its seat until its home loop takes it out.
  if (kind_of(entry) == Kind::h1) seat.ended = std::exchange(seat.pooled, nullptr);
  seat.closed = cause;
  if (seat.tunnel.exchange(false, std::memory_order_relaxed)) tunnelling.fetch_sub(1, std::memory_order_relaxed);
  work.ended.push(entry);
}

// Under the mutex. What was found worn out when somebody asked for it: an idle one ends, one in use takes nobody new.
bool Destination::Impl::end_worn(Chair& entry, Word seen, Closed cause, Errands& work) {
  if (!seen.borrowed()) return end_idle(entry, seen, cause, work);
  if (Word(entry.word.load(std::memory_order_acquire)).generation() != seen.generation()) return false;
  drain(entry, cause, work);
  return true;
}

void Destination::Impl::discard(Chair& entry, Closed cause, Instant now) {
  if (kind_of(entry) == Kind::h2) return leave_session(entry, cause, true, now);
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    end(entry, cause, work);
  }
  finish(work, now, replaces(cause));
}

// From one loop, now and then.
void Destination::Impl::sweep(Instant now) {
  const std::optional<std::uint32_t> need = measured_need(now);
  end_worn_out(now);
  if (need) trim(*need);
  const std::uint32_t lacking = lacking_idle();
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    lacking_seen = lacking;
    recall_what_lasts(work, now);
    keep_alive.settle(now);
    swept_at = now;
    publish_horizon();
    keep_min_idle(work, now);
  }
  static_cast<void>(perform(work));
  attend(now);
}

void Destination::Impl::stop(Instant now) {
  {
    const std::scoped_lock lock(mutex);
    // From now on every borrow and release comes here and sees it: see `attention`.
    attention.fetch_or(kStopped, std::memory_order_seq_cst);
  }
  refuse_all(told(FaultKind::draining, Side::self, "the pool is stopping"));
  end_all_idle(Closed::shutdown);
  serve_starved(now);
}

// ---- readiness ----

EventClaim claim_event(std::uint32_t index, std::uint32_t generation, LoopId here) {
  EntryCore* core = EntryIndex::process().find(index);
  if (core == nullptr) return {};
  Chair& entry = static_cast<Chair&>(*core);
  for (;;) {
    const Word word(entry.word.load(std::memory_order_acquire));
    if (!names(word, generation, here) || word.vacant() || word.reserved()) return {};
    Seat& seat = entry.value;
    if (kind_of(entry) == Kind::h2) return {EventClaim::Kind::session, seat.pooled, &seat.owner->self};
    // Ours, lent or on its way to a borrower of this loop: nobody else touches it.
    if (word.borrowed() || word.inspecting()) return {EventClaim::Kind::in_use, seat.pooled, &seat.owner->self};
    // Counted first: whoever finds nothing idle because of this inspection sees that there is one.
    Destination::Impl& owner = *seat.owner;
    owner.inspections.fetch_add(1, std::memory_order_seq_cst);
    if (!try_inspect(entry.word, generation, here)) {  // taken, closed or moved meanwhile: look again
      owner.inspections.fetch_sub(1, std::memory_order_seq_cst);
      owner.inspection_lost();
      continue;
    }
    entry.block->idle(here).clear(entry.bit());
    return {EventClaim::Kind::inspecting, seat.pooled, &seat.owner->self};
  }
}

void end_inspection(std::uint32_t index, bool quiet, Closed cause, Instant now, bool in_order) {
  Chair& entry = static_cast<Chair&>(*EntryIndex::process().find(index));
  entry.value.owner->end_inspection(entry, quiet, cause, now, in_order);
}

void Destination::Impl::end_inspection(Chair& entry, bool quiet, Closed cause, Instant now, bool in_order) {
  if (quiet) {
    const Change change = end_inspect(entry.word, true);
    CARPOOL_ASSERT(change);
    pool.publish(entry, change.after.home());
    inspections.fetch_sub(1, std::memory_order_seq_cst);  // then it is idle, and who relied on the count is served
    return came_to_rest(now);
  }
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    if (cause == Closed::peer_closed) learn_end_at_rest(entry, in_order, now);
    CARPOOL_ASSERT(end_inspect(entry.word, false));
    book_end(entry, cause, work);
    inspections.fetch_sub(1, std::memory_order_seq_cst);
  }
  finish(work, now, replaces(cause));
}

// An inspection that was counted did not begin: who relied on it is looked after, at the time at which it looked.
void Destination::Impl::inspection_lost() {
  if (waiting()) attend(Instant(Duration(planned_at.load(std::memory_order_relaxed))));
}

}  // namespace carpool::pool
