// What is different for a connection that is shared: its users come and go on any loop, it never moves, it may refuse
// new ones while it serves the old, and its home loop disposes of it, by mail, because it may be inside it.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// ---- users ----

void Destination::Impl::release_stream(Chair& entry, bool used, Instant now) {
  const std::uint32_t uses = Word(entry.word.load(std::memory_order_relaxed)).uses();
  const Fitness wear = worn(entry, used || uses == 0 ? uses : uses - 1, now);
  if (wear != Fitness::fit) return leave_session(entry, cause_of(wear), false, now);
  if (session_claimed(entry, now)) return leave_session(entry, Closed::budget, false, now);
  entry.value.idle_since.set(now);  // before the release: then it may be another's
  if (!pool.release(entry, used))
    return leave_session(entry, Closed::goaway, false, now);  // retired: its cause is known
  came_to_rest(now);
}

// One user goes and nobody new comes. The last one ends it, with the cause of the first.
void Destination::Impl::leave_session(Chair& entry, Closed cause, bool broken, Instant now) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    const Change change = try_close(entry.word);
    CARPOOL_ASSERT(change);
    note_draining(entry, change, cause);
    entry.value.broken |= broken;
    if (change.after.vacant()) book_end(entry, entry.value.closed, work);
  }
  static_cast<void>(perform(work));
  attend(now, replaces(cause));
}

// Under the mutex: from now on nobody new; what is free ends.
void Destination::Impl::drain(Chair& entry, Closed cause, Errands& work) {
  const Change change = try_terminate(entry.word);
  if (!change) return;
  note_draining(entry, change, cause);
  if (change.after.vacant()) book_end(entry, entry.value.closed, work);
}

void Destination::Impl::note_draining(Chair& entry, const Change& change, Closed cause) {
  if (change.before.closed()) return;
  entry.block->idle(change.before.home()).clear(entry.bit());
  entry.value.closed = cause;
  entry.value.draining = true;
  --held[1];
  ++draining;
  uncount_local(entry);
}

// ---- what its home loop says ----

void Destination::Impl::set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, bool answered,
                                    Instant now) {
  Chair& entry = chair(index);
  {
    const std::scoped_lock lock(mutex);  // keeps it from being vacated
    const Word word(entry.word.load(std::memory_order_acquire));
    if (word.closed() || word.reserved() || !names(word, generation, house.here())) return;
    FirstStreams::Session& first = entry.value.first_streams;
    answered ? first_streams.proven(first, most) : first_streams.changed(first, most);
    if (most == entry.sharing().most) return;
    pool.share(entry, most);
    if (most != 0) expected = most;
    set_shares();
  }
  attend(now, Opened::streams_exhausted);
}

void Destination::Impl::retire(std::uint32_t index, std::uint32_t generation, Closed cause, Instant now) {
  Chair& entry = chair(index);
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    const Word word(entry.word.load(std::memory_order_acquire));
    if (word.closed() || word.reserved() || !names(word, generation, house.here())) return;
    entry.value.broken = true;
    drain(entry, cause, work);
  }
  static_cast<void>(perform(work));
  attend(now, replaces(cause));
}

// ---- arrival of a stream, on the borrower's loop ----

void Destination::Impl::arrive_stream(Grant& grant, Instant now) {
  Chair& entry = *grant.entry;
  Borrower& borrower = *grant.borrower;
  const LoopId here = grant.to;
  const bool meant = borrower.ticket_ == grant.ticket;
  const Word word(entry.word.load(std::memory_order_acquire));
  bool broken = false;
  std::optional<Fault> no;
  {
    const std::scoped_lock lock(mutex);
    if (!meant || entry.value.broken) shares.give(grant.share);
    grants.put(grant);
    // Its life was judged when it was given: one that takes nobody new any more still serves this one, if it can.
    broken = entry.value.broken;
    if (meant && broken) no = rejoin(borrower);
  }
  if (meant && !broken) return hand_over(borrower, entry, word, here, now);
  release_stream(entry, false, now);
  if (no) tell(borrower, std::move(*no));
}

// ---- the end, on its home loop ----

void Farewell::arrive(Instant now) {
  entry->value.owner->part(*entry, now);
}

void Destination::Impl::part(Chair& entry, Instant now) {
  const Closed cause = entry.value.closed;
  house.dispose(std::exchange(entry.value.pooled, nullptr), cause);
  give_up(entry);
  attend(now, replaces(cause));
}

// ---- dials ----

// True: it rests. A session that broke before anyone saw it counts as a failed dial: who waits would dial for ever.
bool Destination::Impl::enable_session(Chair& entry, Sharing sharing, bool clean, Errands& work, Instant now) {
  entry.value.farewell.entry = &entry;
  entry.value.broken = false;
  count_local(entry, house.here());
  CARPOOL_ASSERT(pool.enable(entry, house.here(), false, sharing));
  if (const std::optional<Closed> ends = unwelcome(entry); ends || !clean) {
    drain(entry, ends.value_or(Closed::peer_closed), work);
    if (ends) return false;
    const Fault fault = told(FaultKind::connection_terminated, Side::upstream, "closed before its first request");
    note_dial_failure(fault, now);
    refuse_after_failure(entry.value.asked, fault, work);
    return false;
  }
  return true;
}

// Under the mutex: what a dial brought is what the next one is expected to bring.
void Destination::Impl::learn_streams(Kinds asked, Kind kind, std::uint32_t streams, Errands& work) {
  if (asked == Kinds::h1_only) return;
  expected = kind == Kind::h1 ? 1 : std::max(1U, streams);
  set_shares();
  if (kind == Kind::h2 || stopped()) return;
  const Fault fault = told(FaultKind::tls_protocol, Side::upstream, "the origin speaks no HTTP/2");
  while (line.wanting(Kinds::h2_only) != 0 && work.step()) refuse(*line.first_wanting(Kinds::h2_only), fault, work);
}

namespace {
// With so many users of `most` another session is dialed, so that it is there when this one is full.
constexpr std::uint32_t nearly_full(std::uint32_t most) {
  return most < 4 ? most : most - most / 8 - (most < 8 ? 1 : 0);
}
}  // namespace

// A borrower of this loop got a stream, and no lock is held: does this loop lack a session of its own, or everybody
// spare streams?
void Destination::Impl::lent_stream(Word word, std::uint32_t most, LoopId here, Instant now) {
  const bool lonely = word.home() != here && count(here).sessions.load(std::memory_order_relaxed) == 0;
  const bool filling = word.users() == nearly_full(most);
  if (!lonely && !filling) return;
  if (pool.full() || (budget != nullptr && budget->full())) return;
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    dial_ahead(lonely ? Opened::loop_local : Opened::streams_exhausted, work, now);
  }
  finish(work, now, Opened::all_busy);
}

// Under the mutex: a dial that nobody waits for, if there is room and nothing speaks against it.
void Destination::Impl::dial_ahead(Opened cause, Errands& work, Instant now) {
  if (stopped() || paused() || expected == 1 || backoff.holds(now) || dial_room(now) == 0) return;
  const bool lonely = cause == Opened::loop_local && count(house.here()).sessions.load(std::memory_order_relaxed) == 0;
  if (!lonely && !lacks_streams()) return;
  Chair* entry = reserve(work);
  if (entry != nullptr) book_dial(*entry, Kinds::any, lonely ? cause : Opened::streams_exhausted, work, now);
}

bool Destination::Impl::lacks_streams() const {
  if (held[1] == 0 || wide_dials() != 0 || pool.full()) return false;
  std::uint32_t looked_at = 0;  // where so many are nearly full, another one does no harm
  return pool.find_idle(0, [&](const Chair& entry) {
    if (++looked_at > Errands::kMostSteps) return false;
    const Word word(entry.word.load(std::memory_order_acquire));
    const std::uint32_t most = entry.sharing().most;
    return kind_of(entry) == Kind::h2 && word.lendable(most) && word.users() < nearly_full(most);
  }) == nullptr;
}

// A replay takes a session that did not go stale at rest: newer than its wish, or in use.
bool Destination::Impl::fresh_enough(const Chair& entry, Word word, Instant since) {
  return kind_of(entry) == Kind::h2 && (word.borrowed() || entry.value.born >= since);
}

// Under the mutex: somebody waits for h1, sessions hold every place, and none of them rests. Else a busy one would keep
// them waiting for ever.
void Destination::Impl::drain_for_h1(Errands& work) {
  const std::uint32_t gone = tunnelling.load(std::memory_order_relaxed);
  if (draining != 0 || h1_dials != 0 || held[0] > gone || !pool.full()) return;
  Chair* least = least_used_session();
  if (least != nullptr) drain(*least, Closed::surplus, work);
}

void Destination::Impl::count_local(Chair& entry, LoopId loop) {
  if (std::exchange(entry.value.counted_local, true)) return;
  entry.value.local_to = loop;
  count(loop).sessions.fetch_add(1, std::memory_order_relaxed);
}
void Destination::Impl::uncount_local(Chair& entry) {
  if (!std::exchange(entry.value.counted_local, false)) return;
  count(entry.value.local_to).sessions.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace carpool::pool
