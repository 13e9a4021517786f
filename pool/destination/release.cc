// Releasing: hand-off to the next borrower, and its arrival there.
#include <algorithm>
#include <memory>
#include <utility>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// `unserved`: the grant arrived for a borrower that had left, or the borrower sent no request.
void Destination::Impl::release(SlotEntry& entry, Use use, Instant now) {
  if (!entry.value.pooled->clean_for_reuse()) {
    if (use == Use::served) learn_close_after_response(entry, now);
    return discard(entry, CloseCause::peer_closed, now);
  }
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  const Reusability reusability = reusability_of(entry, use == Use::served || uses == 0 ? uses : uses - 1, now);
  if (reusability != Reusability::fit) return discard(entry, cause_of(reusability), now);
  if (use == Use::served) {
    entry.value.idle_since.set(now);
    entry.value.idle_probe.store(false, std::memory_order_relaxed);
  }
  if (waiting()) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      release_or_hand_off(entry, use, now, actions);
    }
    offer_slots();
    run_actions_and_serve(actions, now, OpenCause::all_busy);
    if (shares.limited()) serve_waiters(now);   // a share was released too; another idle connection may serve it
    if (is_cooling_down()) serve_waiters(now);  // the trial may be over: nothing was dialed for the next one
  } else {
    CARPOOL_ASSERT(pool.release(entry, use));  // published: another thread may own it from here on
    after_idle(&entry, now);
  }
}

// Serves a borrower that was enqueued, or a command that was given, while an entry was published without the mutex.
// `idle`: the entry if it is an HTTP/1.1 connection that was in use or inspected before.
void Destination::Impl::after_idle(const SlotEntry* idle, Instant now) {
  offer_slots();
  if (waiting()) serve_from_idle(idle, now);  // pairs with enqueue(), begin_pause(), set_limits() and reconnect()
  serve_starved(now);
}

void Destination::Impl::serve_from_idle(const SlotEntry* idle, Instant now) {
  if ((attention.load(std::memory_order_relaxed) & kReview) != 0) {  // relaxed: waiting() has read it
    if (idle != nullptr && needs_replacement(*idle)) plan_missed();
    shrink();
  }
  serve_own_waiters(now, OpenCause::all_busy);
}

// Hands a clean connection to a waiter or makes it idle. A retry accepts none that has served; at the
// cap the connection closes to make a place for the retry's dial.
void Destination::Impl::release_or_hand_off(SlotEntry& entry, Use use, Instant now, DeferredActions& actions) {
  if (stopped()) return end(entry, CloseCause::shutdown, actions);
  if (const std::optional<CloseCause> cause = forced_close_cause(entry)) return end(entry, *cause, actions);
  if (!lends() || live.quarantine() > Duration::zero()) {
    const Instant since = entry.value.idle_since.get();
    if (live.quarantine() > Duration::zero() && !queue.empty()) wake_after_quarantine(since, since, actions);
    CARPOOL_ASSERT(pool.release(entry, use));
    return;
  }
  if (claimed(entry, now)) return end(entry, CloseCause::budget, actions);
  const bool no_room = pool.full() || (budget != nullptr && budget->full());
  const bool slot_needed =
      queue.retries() > streams_coming() || queue.lacks_kind(Protocol::h2, supply.held(), supply.wide_dials());
  if (slot_needed && no_room && !backoff.blocks(now) && allowed_dials(now) != 0) {
    return end(entry, CloseCause::surplus, actions);
  }
  if (use == Use::unserved) {  // its idle time continues, so a waiter may refuse it
    CARPOOL_ASSERT(pool.release(entry, use));
    return schedule(actions, now, OpenCause::all_busy);
  }
  Borrower* borrower = queue.first_other(Protocol::h1, shares);
  if (borrower == nullptr) {
    CARPOOL_ASSERT(pool.release(entry));
    return;
  }
  if (borrower->want_.max_idle < Duration::zero()) {
    shares.release(share_of(borrower->want_));
    return offer_to_waiters(entry, no_room, now, actions);
  }
  const Change change = try_hand_off(entry.word, borrower->loop_);
  CARPOOL_ASSERT(change);
  grant(entry, *borrower, change, actions);
}

// The next waiter accepts no connection that has served. At the cap the connection closes for its
// dial; otherwise that dial is in progress and the connection goes to a later waiter.
void Destination::Impl::offer_to_waiters(SlotEntry& entry, bool no_room, Instant now, DeferredActions& actions) {
  if (no_room && !backoff.blocks(now) && allowed_dials(now) != 0) {
    ++made_room;
    return end(entry, CloseCause::surplus, actions);
  }
  CARPOOL_ASSERT(pool.release(entry));
  match_idle(actions, now);
}

// Returns the borrower for a connection that has never served; its share is taken.
Borrower* Destination::Impl::next_borrower(Protocol kind) {
  Borrower* retry = queue.first_retry(kind);
  return retry != nullptr ? retry : queue.first_other(kind, shares);
}

// Grants the entry to `borrower`: `change` made it the owner, the move completes on arrival. Its share is taken.
void Destination::Impl::grant(SlotEntry& entry, Borrower& borrower, const Change& change, DeferredActions& actions) {
  queue.remove_served(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  offer_surplus_dials();
  const bool pinned = entry.multiplexing().pinned;
  lent_at(entry);
  actions.shared |= pinned;
  const std::uint32_t trial = cool_down.trial_due() ? cool_down.begin_trial() : 0;
  if (&borrower == actions.caller) {
    borrower.ticket_ = 0;
    actions.callers = &entry;
    actions.callers_word = change.after;
    actions.callers_trial = trial;
    actions.callers_from = change.before.home();
    return;
  }
  Grant& grant = pinned ? grants.take() : entry.value.grant;  // give_idle() reserved one
  grant.entry = &entry;
  grant.borrower = &borrower;
  grant.word = change.after;
  grant.ticket = borrower.ticket_;
  grant.from = change.before.home();
  grant.to = borrower.loop_;
  grant.moved = !pinned && grant.from != borrower.loop_;
  grant.share = share_of(borrower.want_);
  grant.trial = trial;
  actions.grants.push(grant);
}

namespace {
// Per pass. More distinct values of max_idle are not expected.
constexpr unsigned kMaxFailedSearches = 32;
}  // namespace

// Grants idle connections and spare streams to the waiters in order. A waiter that rejects a long-idle connection
// leaves it to the next one; a connection that every waiter rejects stays idle.
void Destination::Impl::match_idle(DeferredActions& actions, Instant now) {
  planned_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  match_retries(actions, now);
  // Indexed by ProtocolMask. The initial value is shorter than any idle time.
  std::array<Duration, 3> refused{Duration::min(), Duration::min(), Duration::min()};
  unsigned classes = ClassQuota::kMaxClasses, failed_searches = 0;
  while (Borrower* at = lends() ? queue.first_willing(refused, classes) : nullptr) {
    if (failed_searches == kMaxFailedSearches || !actions.step()) return;
    const BorrowRequest& want = at->want_;
    const std::uint8_t share = share_of(want);
    if (!shares.acquire(share)) {
      classes = share;  // no lower class has a share either
      continue;
    }
    const Duration most = want.max_idle;  // a grant invalidates `at`
    Duration& limit = refused[static_cast<std::size_t>(want.kind)];
    const bool takes_all = want.kind == ProtocolMask::any;
    actions.saw_idle = false;
    if (give_idle(*at, now, actions)) continue;
    shares.release(share);
    if (!actions.saw_idle) return;  // no connection is available to any waiter
    ++failed_searches;
    limit = most;
    for (Duration& other : refused) other = takes_all ? std::max(other, most) : other;
  }
}

// Requests a wake-up for the end of the quarantine of a connection released at `since`.
void Destination::Impl::wake_after_quarantine(Instant since, Instant now, DeferredActions& actions) {
  const Instant at = since + live.quarantine();
  if (quarantine_wake > now && quarantine_wake <= at) return;  // requested already
  quarantine_wake = at;
  actions.wake_at = std::min(actions.wake_at, at);
}

void Destination::Impl::wake_for_quarantined(DeferredActions& actions, Instant now) {
  if (quarantine_wake > now) return;  // that wake-up requests the next one
  Instant earliest = kNever;
  std::uint32_t examined = 0;
  static_cast<void>(pool.find_idle(0, [&](const SlotEntry& entry) {
    const Instant since = entry.value.idle_since.get();
    const bool idle = EntryWord(entry.word.load(std::memory_order_acquire)).idle();
    if (idle && now - since < live.quarantine()) earliest = std::min(earliest, since);
    return ++examined == DeferredActions::kMaxSteps;
  }));
  if (earliest == kNever && examined == DeferredActions::kMaxSteps)
    earliest = now;  // entries that were not examined end their quarantine by then
  if (earliest != kNever) wake_after_quarantine(earliest, now, actions);
}

// Takes an idle connection or a spare stream for this borrower. Expired ones are closed on the way.
bool Destination::Impl::give_idle(Borrower& borrower, Instant now, DeferredActions& actions) {
  if (supply.held(Protocol::h2) != 0 && &borrower != actions.caller && !grants.ready(1)) {
    actions.no_memory = true;
    return false;
  }
  const BorrowRequest want = borrower.want_;
  Reusability reusability = Reusability::fit;
  const auto matcher = [&](const SlotEntry& entry, EntryWord word) {
    actions.saw_idle = true;
    reusability = reusability_for(entry, word, want, now);
    if (reusability == Reusability::fit && want.new_connection_only && !fresh_enough(entry, word, borrower)) {
      reusability = Reusability::unwanted;
    }
    if (reusability == Reusability::fit) return Match::take;
    if (reusability != Reusability::unwanted) return Match::evict;
    actions.idle_refused |= accepts(want.kind, protocol_of(entry)) && !in_quarantine(entry, word, now);
    return Match::skip;
  };
  for (;;) {
    const auto found = search(borrower.loop_, Searcher::any_loop, now, matcher);
    if (found.entry == nullptr) return false;
    if (found.taken) {
      grant(*found.entry, borrower, Change{true, found.before, found.after}, actions);
      return true;
    }
    if (end_expired(*found.entry, found.before, cause_of(reusability), actions))
      actions.why = replaces(cause_of(reusability));
  }
}

// ---- arrival, on the borrower's loop ----

void Grant::arrive(Instant now) {
  entry->value.owner->arrive(*this, now);
}

void Destination::Impl::undo(const Grant& grant) {
  shares.release(grant.share);
  returned_at(*grant.entry);
}

void Destination::Impl::arrive(Grant& grant, Instant now) {
  SlotEntry& entry = *grant.entry;
  if (entry.multiplexing().pinned) return arrive_stream(grant, now);
  Borrower& borrower = *grant.borrower;
  const EntryWord word(entry.word.load(std::memory_order_acquire));
  const bool meant = borrower.ticket_ == grant.ticket;
  const bool watched = !grant.moved || environment.attach(*entry.value.pooled, entry.index, word.generation());
  // A new connection serves once regardless of its limits; one that has served is checked again.
  const bool worn_out = word.uses() > 1 && reusability_of(entry, word.uses() - 1, now) != Reusability::fit;
  if (!meant || !watched || worn_out) undo(grant);
  if (!meant || !watched || worn_out) trial_over(std::exchange(grant.trial, 0U));
  if (watched && !meant) return release(entry, Use::unserved, now);
  if (!watched || worn_out) {
    const CloseCause cause = watched ? cause_of(reusability_of(entry, word.uses() - 1, now)) : CloseCause::error;
    DeferredActions actions;
    std::optional<Fault> fault;
    {
      const Held lock(mutex);
      if (meant) fault = rejoin(borrower);
      end(entry, cause, actions);
    }
    run_actions_and_serve(actions, now, replaces(cause));
    if (fault) deliver_rejection(borrower, std::move(*fault), now);
    return;
  }
  deliver_lease(borrower, entry, word, grant.to, grant.trial, now);
}

void Destination::Impl::deliver_lease(Borrower& borrower, SlotEntry& entry, EntryWord word, LoopId here,
                                      std::uint32_t trial, Instant now) {
  borrower.ticket_ = 0;
  Lease lease;
  lease.trial_ = trial;
  lease.share_ = share_of(borrower.want_);  // as in its grant
  lease.caller_ = borrower.want_.caller;
  lease.tunnel_place_ = borrower.want_.tunnel;
  fill(lease, entry, word, now - borrower.asked_, now, here);
  if (AutoSize* const own = published_auto_size()) own->note_wait(here, now - borrower.since_);
  borrower.on_lease(std::move(lease));
}

// The granted connection was unusable; enqueues the borrower at its former position. Returns a Fault
// if it cannot wait.
std::optional<Fault> Destination::Impl::rejoin(Borrower& borrower) {
  if (std::optional<Fault> ended = why_ended()) return ended;
  if (!ready_to_wait()) return make_fault(FaultKind::overloaded, Side::self, "no memory for the wait queue");
  queue.push(borrower);
  attention.fetch_add(1, std::memory_order_seq_cst);
  return std::nullopt;
}

}  // namespace carpool::pool
