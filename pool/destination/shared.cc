// Multiplexed connections (HTTP/2): borrowers may be on any loop; the connection never moves; it may refuse new streams
// while it finishes open ones; it is destroyed on its home loop by a message, because that loop may be using it.
#include <algorithm>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// ---- users ----

void Destination::Impl::release_stream(SlotEntry& entry, Use use, Instant now) {
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  const Reusability reusability = reusability_of(entry, use == Use::served || uses == 0 ? uses : uses - 1, now);
  if (reusability != Reusability::fit) return release_and_drain(entry, cause_of(reusability), SessionEnd::drains, now);
  if (session_claimed(entry, now)) return release_and_drain(entry, CloseCause::budget, SessionEnd::drains, now);
  entry.value.idle_since.set(now);  // before the release: another thread may own it afterwards
  if (!pool.release(entry, use))
    return release_and_drain(entry, CloseCause::goaway, SessionEnd::drains, now);  // already retired, with its cause
  after_idle(nullptr, now);  // reconnect() drains sessions and marks none
}

// Removes one user and admits no new one. The last user closes it, with the cause of the first.
void Destination::Impl::release_and_drain(SlotEntry& entry, CloseCause cause, SessionEnd how, Instant now) {
  DeferredActions actions;
  {
    const Held lock(mutex);
    const Change change = try_close(entry.word);
    CARPOOL_ASSERT(change);
    note_draining(entry, change, cause);
    entry.value.broken |= how == SessionEnd::broken;
    if (change.after.vacant()) record_close(entry, entry.value.closed, actions);
  }
  static_cast<void>(run_actions(actions));
  serve_waiters(now, replaces(cause));
}

// Admits no new user; without users it closes at once.
void Destination::Impl::drain(SlotEntry& entry, CloseCause cause, DeferredActions& actions) {
  const Change change = try_terminate(entry.word);
  if (!change) return;
  note_draining(entry, change, cause);
  if (change.after.vacant()) record_close(entry, entry.value.closed, actions);
}

void Destination::Impl::note_draining(SlotEntry& entry, const Change& change, CloseCause cause) {
  if (change.before.closed()) return;
  entry.block->idle(change.before.home()).clear(entry.bit());
  entry.value.closed = cause;
  entry.value.draining = true;
  supply.drained();
  uncount_local(entry);
  review();
}

// ---- events on its home loop ----

void Destination::Impl::set_streams(std::uint32_t index, std::uint32_t generation, std::uint32_t most, LimitSource from,
                                    Instant now) {
  SlotEntry& entry = slot_entry(index);
  {
    const Held lock(mutex);  // keeps it from being vacated
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (word.closed() || word.reserved() || !matches(word, generation, environment.here())) return;
    StreamLimitLearner::Session& first = entry.value.first_streams;
    from == LimitSource::first_response ? first_streams.proven(first, most) : first_streams.changed(first, most);
    if (most == entry.multiplexing().max_users) return;
    pool.share(entry, most);
    if (most != 0) supply.expect(most);
    set_shares();
  }
  serve_waiters(now, OpenCause::streams_exhausted);
}

void Destination::Impl::retire(std::uint32_t index, std::uint32_t generation, CloseCause cause, Instant now) {
  SlotEntry& entry = slot_entry(index);
  DeferredActions actions;
  {
    const Held lock(mutex);
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (word.closed() || word.reserved() || !matches(word, generation, environment.here())) return;
    entry.value.broken = true;
    drain(entry, cause, actions);
  }
  static_cast<void>(run_actions(actions));
  serve_waiters(now, replaces(cause));
}

// ---- arrival of a stream, on the borrower's loop ----

void Destination::Impl::arrive_stream(Grant& grant, Instant now) {
  SlotEntry& entry = *grant.entry;
  Borrower& borrower = *grant.borrower;
  const LoopId here = grant.to;
  const std::uint32_t trial = grant.trial;
  const bool meant = borrower.ticket_ == grant.ticket;
  const EntryWord word = grant.word;
  bool broken = false;
  std::optional<Fault> fault;
  {
    const Held lock(mutex);
    if (!meant || entry.value.broken) undo(grant);
    if (trial != 0 && (!meant || entry.value.broken)) cool_down.trial_over(trial);
    grants.put(grant);
    // The limits were checked when it was granted: a draining session still serves this borrower unless it is broken.
    broken = entry.value.broken;
    if (meant && broken) fault = rejoin(borrower);
  }
  if (meant && !broken) return deliver_lease(borrower, entry, word, here, trial, now);
  release_stream(entry, Use::unserved, now);
  if (fault) deliver_rejection(borrower, std::move(*fault), now);
}

// ---- the end, on its home loop ----

void DisposeMessage::arrive(Instant now) {
  entry->value.owner->dispose_session(*entry, now);
}

void Destination::Impl::dispose_session(SlotEntry& entry, Instant now) {
  const CloseCause cause = entry.value.closed;
  environment.dispose(std::exchange(entry.value.pooled, nullptr), cause);
  release_slot(entry);
  serve_waiters(now, replaces(cause));
}

// ---- dials ----

// Returns true if the session is idle. A session that broke before its first use is a failed dial: otherwise waiters
// would redial forever.
bool Destination::Impl::enable_session(SlotEntry& entry, Multiplexing multiplexing, bool clean,
                                       DeferredActions& actions, Instant now) {
  entry.value.dispose_message.entry = &entry;
  entry.value.broken = false;
  count_local(entry, environment.here());
  CARPOOL_ASSERT(pool.enable(entry, environment.here(), /*acquired=*/false, multiplexing));
  if (const std::optional<CloseCause> ends = forced_close_cause(entry); ends || !clean) {
    drain(entry, ends.value_or(CloseCause::peer_closed), actions);
    if (ends) return false;
    const Fault fault = make_fault(FaultKind::connection_terminated, Side::upstream, "closed before its first request");
    note_dial_failure(fault, now);
    match_retries(actions, now);
    refuse_after_failure(entry.value.asked, fault, actions);
    return false;
  }
  return true;
}

// The next dial is expected to result in the protocol of the last one.
void Destination::Impl::learn_streams(ProtocolMask asked, Protocol kind, std::uint32_t streams,
                                      DeferredActions& actions) {
  if (asked == ProtocolMask::h1_only) return;
  supply.expect(kind == Protocol::h1 ? 1 : std::max(1U, streams));
  set_shares();
  if (kind == Protocol::h2 || stopped()) return;
  const Fault fault = make_fault(FaultKind::tls_protocol, Side::upstream, "the origin does not support HTTP/2");
  while (queue.wanting(ProtocolMask::h2_only) != 0 && actions.step())
    refuse(*queue.first_wanting(ProtocolMask::h2_only), fault, actions);
}

namespace {
// With this many of `most` users another session is dialed, to be ready when this one is full.
constexpr std::uint32_t nearly_full(std::uint32_t most) {
  return most < 4 ? most : most - most / 8 - (most < 8 ? 1 : 0);
}
}  // namespace

// Called when a borrower of this loop got a stream. Dials ahead if this loop has no session of its own or spare streams
// run out.
void Destination::Impl::lent_stream(EntryWord word, std::uint32_t most, LoopId here, Instant now) {
  const bool no_local_session = word.home() != here && count(here).sessions.load(std::memory_order_relaxed) == 0;
  const bool filling = word.users() == nearly_full(most);
  if (!no_local_session && !filling) return;
  if (pool.full() || (budget != nullptr && budget->full())) return;
  DeferredActions actions;
  {
    const Held lock(mutex);
    dial_ahead(no_local_session ? OpenCause::loop_local : OpenCause::streams_exhausted, actions, now);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

// Dials without a waiter if a place is free and no limit or failure forbids it.
void Destination::Impl::dial_ahead(OpenCause cause, DeferredActions& actions, Instant now) {
  if (stopped() || !lends() || supply.expected() == 1 || backoff.blocks(now) || allowed_dials(now) == 0) return;
  const bool no_local_session =
      cause == OpenCause::loop_local && count(environment.here()).sessions.load(std::memory_order_relaxed) == 0;
  if (!no_local_session && !lacks_streams()) return;
  SlotEntry* entry = reserve(actions);
  if (entry != nullptr)
    record_dial(*entry, ProtocolMask::any, no_local_session ? cause : OpenCause::streams_exhausted, actions, now);
}

bool Destination::Impl::lacks_streams() const {
  if (supply.held(Protocol::h2) == 0 || supply.wide_dials() != 0 || pool.full()) return false;
  std::uint32_t examined = 0;  // with this many nearly full sessions one more is harmless
  bool spare = false;
  static_cast<void>(pool.find_idle(0, [&](const SlotEntry& entry) {
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    const std::uint32_t most = entry.multiplexing().max_users;
    spare = protocol_of(entry) == Protocol::h2 && word.lendable(most) && word.users() < nearly_full(most);
    return spare || ++examined == DeferredActions::kMaxSteps;
  }));
  return !spare;
}

// A retry accepts a session that cannot have gone stale while idle: newer than its request, or in use. That of its last
// attempt may refuse it again, and would use up all attempts at once.
bool Destination::Impl::fresh_enough(const SlotEntry& entry, EntryWord word, const Borrower& retry) {
  if (protocol_of(entry) != Protocol::h2) return false;
  return entry.value.established_at >= retry.asked_ || (word.borrowed() && entry.index != retry.want_.tried);
}

// Grants sessions to the retries in order. If no session serves one, none serves the older retries after it.
void Destination::Impl::match_retries(DeferredActions& actions, Instant now) {
  while (lends() && supply.held(Protocol::h2) != 0) {
    Borrower* retry = queue.first_retry(Protocol::h2);
    if (retry == nullptr) return;
    if (give_idle(*retry, now, actions)) continue;
    const bool no_dial = backoff.blocks(now) || allowed_dials(now) == 0;
    const bool no_room = pool.full() || (budget != nullptr && budget->full());
    const std::uint32_t coming = no_dial ? supply.streams_coming() : streams_coming();  // also from places being freed
    if ((!no_dial && !no_room) || queue.retries() <= coming) return;
    // No other session can be dialed: that of its last attempt serves it after all.
    if (std::exchange(retry->want_.tried, BorrowRequest::kNoEntry) == BorrowRequest::kNoEntry) return;
  }
}

// A waiter needs HTTP/1.1, and sessions hold every place of the pool, or the total is used up; none of them is idle.
// Drains one; otherwise busy sessions would block it forever.
void Destination::Impl::drain_for_h1(DeferredActions& actions) {
  const std::uint32_t tunnels_open = tunnelling.load(std::memory_order_relaxed);
  if (supply.draining() != 0 || supply.h1_dials() != 0 || supply.held(Protocol::h1) > tunnels_open) return;
  if (!pool.full() && (budget == nullptr || !budget->full())) return;
  SlotEntry* least = least_used_session();
  if (least != nullptr) drain(*least, CloseCause::surplus, actions);
}

void Destination::Impl::count_local(SlotEntry& entry, LoopId loop) {
  if (std::exchange(entry.value.counted_local, true)) return;
  entry.value.local_to = loop;
  count(loop).sessions.fetch_add(1, std::memory_order_relaxed);
}
void Destination::Impl::uncount_local(SlotEntry& entry) {
  if (!std::exchange(entry.value.counted_local, false)) return;
  count(entry.value.local_to).sessions.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace carpool::pool
