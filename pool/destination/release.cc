// From one borrower to the next: release, hand-off to the line, arrival.
#include <algorithm>
#include <memory>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// `used`: it served the borrower who gives it back; one that arrived for somebody who is gone did not.
void Destination::Impl::release(SlotEntry& entry, bool used, Instant now) {
  if (!entry.value.pooled->clean_for_reuse()) {
    if (used) learn_end_after_answer(entry, now);
    return discard(entry, CloseCause::peer_closed, now);
  }
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  const Reusability wear = reusability_of(entry, used || uses == 0 ? uses : uses - 1, now);
  if (wear != Reusability::fit) return discard(entry, cause_of(wear), now);
  if (used) {
    entry.value.idle_since.set(now);
    entry.value.idle_probe.store(false, std::memory_order_relaxed);
  }
  if (waiting()) {
    DeferredActions actions;
    {
      const std::scoped_lock lock(mutex);
      release_or_hand_off(entry, used, now, actions);
    }
    offer_slots();
    run_actions_and_serve(actions, now, OpenCause::all_busy);
    if (shares.limited()) serve_waiters(now);  // beside this one a share came back, for which something else may rest
  } else {
    CARPOOL_ASSERT(pool.release(entry, used));  // published: from here on it is not ours
    after_idle(now);
  }
}

// After an entry was published without the mutex: whoever joined the line at that moment gets it.
void Destination::Impl::after_idle(Instant now) {
  offer_slots();
  if (waiting()) serve_own_waiters(now, OpenCause::all_busy);  // the pair of enqueue()
  serve_starved(now);
}

// Under the mutex: to whom a clean connection goes. A replay takes none that served; when the cap leaves it no other
// way, the connection makes room for the replay's own.
void Destination::Impl::release_or_hand_off(SlotEntry& entry, bool used, Instant now, DeferredActions& actions) {
  if (stopped()) return end(entry, CloseCause::shutdown, actions);
  if (const std::optional<CloseCause> cause = forced_close_cause(entry)) return end(entry, *cause, actions);
  if (paused() || live.quarantine() > Duration::zero()) {
    const Instant since = entry.value.idle_since.get();
    if (live.quarantine() > Duration::zero() && !line.empty()) wake_after_quarantine(since, since, actions);
    CARPOOL_ASSERT(pool.release(entry, used));
    return;
  }
  if (claimed(entry, now)) return end(entry, CloseCause::budget, actions);
  const bool no_room = pool.full() || (budget != nullptr && budget->full());
  const bool somebody_needs_the_place = line.replays() > supply() || line.lacks_kind(Protocol::h2, held, wide_dials());
  if (somebody_needs_the_place && no_room && !backoff.blocks(now) && dial_room(now) != 0) {
    return end(entry, CloseCause::surplus, actions);
  }
  Borrower* borrower = line.first_other(Protocol::h1, shares);
  if (borrower == nullptr) {
    CARPOOL_ASSERT(pool.release(entry, used));
    return;
  }
  const std::uint32_t uses = EntryWord(entry.word.load(std::memory_order_relaxed)).uses();
  if (borrower->want_.max_idle < Duration::zero() && (used || uses > 1)) {
    shares.release(share_of(borrower->want_));
    return offer_to_waiters(entry, used, no_room, now, actions);
  }
  const Change change = try_hand(entry.word, borrower->loop_, used);
  CARPOOL_ASSERT(change);
  grant(entry, *borrower, change.before.home(), actions);
}

// Under the mutex: whose turn it is takes no connection that has served. Where there is no room for its dial the
// connection makes room; else its dial is on its way, and those behind it get the connection.
void Destination::Impl::offer_to_waiters(SlotEntry& entry, bool used, bool no_room, Instant now,
                                         DeferredActions& actions) {
  if (no_room && !backoff.blocks(now) && dial_room(now) != 0) {
    ++made_room;
    return end(entry, CloseCause::surplus, actions);
  }
  CARPOOL_ASSERT(pool.release(entry, used));
  match_idle(actions, now);
}

// Whom a connection that never served goes to; with its share.
Borrower* Destination::Impl::next_borrower(Protocol kind) {
  Borrower* replay = line.first_replay(kind);
  return replay != nullptr ? replay : line.first_other(kind, shares);
}

// The entry belongs to `borrower` from now on: in the word already, in fact when it arrives there. Its share was taken.
void Destination::Impl::grant(SlotEntry& entry, Borrower& borrower, LoopId from, DeferredActions& actions) {
  line.leave(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  offer_surplus_dials();
  const bool stays = entry.multiplexing().pinned;
  actions.shared |= stays;
  if (&borrower == actions.caller) {
    borrower.ticket_ = 0;
    actions.callers = &entry;
    actions.callers_from = from;
    return;
  }
  Grant& grant = stays ? grants.take() : entry.value.grant;  // give_idle() saw to it that there is one
  grant.entry = &entry;
  grant.borrower = &borrower;
  grant.ticket = borrower.ticket_;
  grant.from = from;
  grant.to = borrower.loop_;
  grant.moved = !stays && from != borrower.loop_;
  grant.share = share_of(borrower.want_);
  actions.grants.push(grant);
}

namespace {
constexpr unsigned kMostInVain = 32;  // searches of one look: as many different limits of rest are not expected
}  // namespace

// Idle connections and spare streams for those who wait, in their order. Who refuses what rested long leaves it to the
// next; what nobody wants stays.
void Destination::Impl::match_idle(DeferredActions& actions, Instant now) {
  // One that no session serves is older than those behind it, which no session serves either.
  while (held[1] != 0) {
    Borrower* replay = line.first_replay(Protocol::h2);
    if (replay == nullptr || !give_idle(*replay, now, actions)) break;
  }
  // By ProtocolMask: nothing rested so short.
  std::array<Duration, 3> refused{Duration::min(), Duration::min(), Duration::min()};
  unsigned classes = ClassQuota::kMostClasses, in_vain = 0;
  while (Borrower* at = line.first_willing(refused, classes)) {
    if (in_vain == kMostInVain || !actions.step()) return;
    const BorrowRequest& want = at->want_;
    const std::uint8_t share = share_of(want);
    if (!shares.acquire(share)) {
      classes = share;  // nor is there one for a class below
      continue;
    }
    const Duration most = want.max_idle;  // a grant ends `at`
    Duration& limit = refused[static_cast<std::size_t>(want.kind)];
    const bool takes_all = want.kind == ProtocolMask::any;
    actions.saw_idle = false;
    if (give_idle(*at, now, actions)) continue;
    shares.release(share);
    if (!actions.saw_idle) return;  // nothing is there for anybody
    ++in_vain;
    limit = most;
    for (Duration& other : refused) other = takes_all ? std::max(other, most) : other;
  }
}

// Under the mutex: somebody waits for one that was given back at `since`.
void Destination::Impl::wake_after_quarantine(Instant since, Instant now, DeferredActions& actions) {
  const Instant at = since + live.quarantine();
  if (quarantine_wake > now && quarantine_wake <= at) return;  // asked for already
  quarantine_wake = at;
  actions.wake_at = std::min(actions.wake_at, at);
}

void Destination::Impl::ask_for_quarantined(DeferredActions& actions, Instant now) {
  if (quarantine_wake > now) return;  // who looks then asks again
  Instant earliest = kNever;
  std::uint32_t looked_at = 0;
  static_cast<void>(pool.find_idle(0, [&](const SlotEntry& entry) {
    const Instant since = entry.value.idle_since.get();
    const bool idle = EntryWord(entry.word.load(std::memory_order_acquire)).idle();
    if (idle && now - since < live.quarantine()) earliest = std::min(earliest, since);
    return ++looked_at == DeferredActions::kMostSteps;
  }));
  if (earliest == kNever && looked_at == DeferredActions::kMostSteps)
    earliest = now;  // those behind them: at the latest
  if (earliest != kNever) wake_after_quarantine(earliest, now, actions);
}

// Something idle, or a spare stream, for this borrower. What is worn out ends on the way.
bool Destination::Impl::give_idle(Borrower& borrower, Instant now, DeferredActions& actions) {
  if (held[1] != 0 && &borrower != actions.caller && !grants.ready(1)) {
    actions.no_memory = true;
    return false;
  }
  const BorrowRequest want = borrower.want_;
  Reusability found_fitness = Reusability::fit;
  const auto judge = [&](const SlotEntry& entry, EntryWord word) {
    actions.saw_idle = true;
    found_fitness = reusability_for(entry, word, want, now);
    if (found_fitness == Reusability::fit && want.new_connection_only && !fresh_enough(entry, word, borrower.since_)) {
      found_fitness = Reusability::unwanted;
    }
    if (found_fitness == Reusability::fit) return Match::take;
    if (found_fitness != Reusability::unwanted) return Match::evict;
    actions.idle_refused = true;
    return Match::skip;
  };
  for (;;) {
    const auto found = search(borrower.loop_, false, judge);
    if (found.entry == nullptr) return false;
    if (found.taken) {
      grant(*found.entry, borrower, found.before.home(), actions);
      return true;
    }
    if (end_expired(*found.entry, found.before, cause_of(found_fitness), actions))
      actions.why = replaces(cause_of(found_fitness));
  }
}

// ---- arrival, on the borrower's loop ----

void Grant::arrive(Instant now) {
  entry->value.owner->arrive(*this, now);
}

void Destination::Impl::arrive(Grant& grant, Instant now) {
  SlotEntry& entry = *grant.entry;
  if (entry.multiplexing().pinned) return arrive_stream(grant, now);
  Borrower& borrower = *grant.borrower;
  const EntryWord word(entry.word.load(std::memory_order_acquire));
  const bool meant = borrower.ticket_ == grant.ticket;
  const bool watched = !grant.moved || environment.attach(*entry.value.pooled, entry.index, word.generation());
  // A new connection serves once whatever its life; one that served is judged again.
  const bool worn_out = word.uses() > 1 && reusability_of(entry, word.uses() - 1, now) != Reusability::fit;
  if (!meant || !watched || worn_out) shares.release(grant.share);
  if (watched && !meant) return release(entry, false, now);
  if (!watched || worn_out) {
    const CloseCause cause = watched ? cause_of(reusability_of(entry, word.uses() - 1, now)) : CloseCause::error;
    DeferredActions actions;
    std::optional<Fault> no;
    {
      const std::scoped_lock lock(mutex);
      if (meant) no = rejoin(borrower);
      end(entry, cause, actions);
    }
    run_actions_and_serve(actions, now, replaces(cause));
    if (no) deliver_rejection(borrower, std::move(*no));
    return;
  }
  hand_over(borrower, entry, word, grant.to, now);
}

void Destination::Impl::hand_over(Borrower& borrower, SlotEntry& entry, EntryWord word, LoopId here, Instant now) {
  borrower.ticket_ = 0;
  Lease lease;
  lease.share_ = share_of(borrower.want_);  // as its grant
  lease.tunnel_place_ = borrower.want_.tunnel;
  fill(lease, entry, word, now - borrower.since_, now, here);
  borrower.on_lease(std::move(lease));
}

// Under the mutex: what it was given was no good; back to where it stood. A Fault: it cannot, and is to be told so.
std::optional<Fault> Destination::Impl::rejoin(Borrower& borrower) {
  if (stopped()) return make_fault(FaultKind::draining, Side::self, "the pool is stopping");
  if (!ready_to_wait()) return make_fault(FaultKind::overloaded, Side::self, "no memory to wait in line");
  line.join(borrower);
  attention.fetch_add(1, std::memory_order_seq_cst);
  return std::nullopt;
}

}  // namespace carpool::pool
