// From one borrower to the next: release, hand-off to the line, arrival.
#include <algorithm>
#include <memory>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// `used`: it served the borrower who gives it back; one that arrived for somebody who is gone did not.
void Destination::Impl::release(Chair& entry, bool used, Instant now) {
  if (!entry.value.pooled->settle()) {
    if (used) learn_end_after_answer(entry, now);
    return discard(entry, Closed::peer_closed, now);
  }
  const std::uint32_t uses = Word(entry.word.load(std::memory_order_relaxed)).uses();
  const Fitness wear = worn(entry, used || uses == 0 ? uses : uses - 1, now);
  if (wear != Fitness::fit) return discard(entry, cause_of(wear), now);
  if (used) {
    entry.value.idle_since.set(now);
    entry.value.left.store(false, std::memory_order_relaxed);
  }
  if (waiting()) {
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      hand_on(entry, used, now, work);
    }
    offer_slots();
    finish(work, now, Opened::all_busy);
    if (shares.limited()) attend(now);  // beside this one a share came back, for which something else may rest
  } else {
    CARPOOL_ASSERT(pool.release(entry, used));  // published: from here on it is not ours
    came_to_rest(now);
  }
}

// After an entry was published without the mutex: whoever joined the line at that moment gets it.
void Destination::Impl::came_to_rest(Instant now) {
  offer_slots();
  if (waiting()) attend_own(now, Opened::all_busy);  // the pair of stand_in_line()
  serve_starved(now);
}

// Under the mutex: to whom a clean connection goes. A replay takes none that served; when the cap leaves it no other
// way, the connection makes room for the replay's own.
void Destination::Impl::hand_on(Chair& entry, bool used, Instant now, Errands& work) {
  if (stopped()) return end(entry, Closed::shutdown, work);
  if (const std::optional<Closed> cause = unwelcome(entry)) return end(entry, *cause, work);
  if (paused() || live.quarantine() > Duration::zero()) {
    const Instant since = entry.value.idle_since.get();
    if (live.quarantine() > Duration::zero() && !line.empty()) wake_after_quarantine(since, since, work);
    CARPOOL_ASSERT(pool.release(entry, used));
    return;
  }
  if (claimed(entry, now)) return end(entry, Closed::budget, work);
  const bool no_room = pool.full() || (budget != nullptr && budget->full());
  const bool somebody_needs_the_place = line.replays() > supply() || line.lacks_kind(Kind::h2, held, wide_dials());
  if (somebody_needs_the_place && no_room && !backoff.holds(now) && dial_room(now) != 0) {
    return end(entry, Closed::surplus, work);
  }
  Borrower* borrower = line.first_other(Kind::h1, shares);
  if (borrower == nullptr) {
    CARPOOL_ASSERT(pool.release(entry, used));
    return;
  }
  const std::uint32_t uses = Word(entry.word.load(std::memory_order_relaxed)).uses();
  if (borrower->want_.max_idle < Duration::zero() && (used || uses > 1)) {
    shares.give(share_of(borrower->want_));
    return pass_by(entry, used, no_room, now, work);
  }
  const Change change = try_hand(entry.word, borrower->loop_, used);
  CARPOOL_ASSERT(change);
  grant(entry, *borrower, change.before.home(), work);
}

// Under the mutex: whose turn it is takes no connection that has served. Where there is no room for its dial the
// connection makes room; else its dial is on its way, and those behind it get the connection.
void Destination::Impl::pass_by(Chair& entry, bool used, bool no_room, Instant now, Errands& work) {
  if (no_room && !backoff.holds(now) && dial_room(now) != 0) {
    ++made_room;
    return end(entry, Closed::surplus, work);
  }
  CARPOOL_ASSERT(pool.release(entry, used));
  match_idle(work, now);
}

// Whom a connection that never served goes to; with its share.
Borrower* Destination::Impl::taker(Kind kind) {
  Borrower* replay = line.first_replay(kind);
  return replay != nullptr ? replay : line.first_other(kind, shares);
}

// The entry belongs to `borrower` from now on: in the word already, in fact when it arrives there. Its share was taken.
void Destination::Impl::grant(Chair& entry, Borrower& borrower, LoopId from, Errands& work) {
  line.leave(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  offer_spare_dials();
  const bool stays = entry.sharing().stays;
  work.shared |= stays;
  if (&borrower == work.caller) {
    borrower.ticket_ = 0;
    work.callers = &entry;
    work.callers_from = from;
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
  work.grants.push(grant);
}

namespace {
constexpr unsigned kMostInVain = 32;  // searches of one look: as many different limits of rest are not expected
}  // namespace

// Idle connections and spare streams for those who wait, in their order. Who refuses what rested long leaves it to the
// next; what nobody wants stays.
void Destination::Impl::match_idle(Errands& work, Instant now) {
  // One that no session serves is older than those behind it, which no session serves either.
  while (held[1] != 0) {
    Borrower* replay = line.first_replay(Kind::h2);
    if (replay == nullptr || !give_idle(*replay, now, work)) break;
  }
  // By Kinds: nothing rested so short.
  std::array<Duration, 3> refused{Duration::min(), Duration::min(), Duration::min()};
  unsigned classes = Shares::kMostClasses, in_vain = 0;
  while (Borrower* at = line.first_willing(refused, classes)) {
    if (in_vain == kMostInVain || !work.step()) return;
    const Want& want = at->want_;
    const std::uint8_t share = share_of(want);
    if (!shares.take(share)) {
      classes = share;  // nor is there one for a class below
      continue;
    }
    const Duration most = want.max_idle;  // a grant ends `at`
    Duration& limit = refused[static_cast<std::size_t>(want.kind)];
    const bool takes_all = want.kind == Kinds::any;
    work.saw_idle = false;
    if (give_idle(*at, now, work)) continue;
    shares.give(share);
    if (!work.saw_idle) return;  // nothing is there for anybody
    ++in_vain;
    limit = most;
    for (Duration& other : refused) other = takes_all ? std::max(other, most) : other;
  }
}

// Under the mutex: somebody waits for one that was given back at `since`.
void Destination::Impl::wake_after_quarantine(Instant since, Instant now, Errands& work) {
  const Instant at = since + live.quarantine();
  if (quarantine_wake > now && quarantine_wake <= at) return;  // asked for already
  quarantine_wake = at;
  work.wake_at = std::min(work.wake_at, at);
}

void Destination::Impl::ask_for_quarantined(Errands& work, Instant now) {
  if (quarantine_wake > now) return;  // who looks then asks again
  Instant earliest = kNever;
  std::uint32_t looked_at = 0;
  static_cast<void>(pool.find_idle(0, [&](const Chair& entry) {
    const Instant since = entry.value.idle_since.get();
    const bool idle = Word(entry.word.load(std::memory_order_acquire)).idle();
    if (idle && now - since < live.quarantine()) earliest = std::min(earliest, since);
    return ++looked_at == Errands::kMostSteps;
  }));
  if (earliest == kNever && looked_at == Errands::kMostSteps) earliest = now;  // those behind them: at the latest
  if (earliest != kNever) wake_after_quarantine(earliest, now, work);
}

// Something idle, or a spare stream, for this borrower. What is worn out ends on the way.
bool Destination::Impl::give_idle(Borrower& borrower, Instant now, Errands& work) {
  if (held[1] != 0 && &borrower != work.caller && !grants.ready(1)) {
    work.no_memory = true;
    return false;
  }
  const Want want = borrower.want_;
  Fitness found_fitness = Fitness::fit;
  const auto judge = [&](const Chair& entry, Word word) {
    work.saw_idle = true;
    found_fitness = fitness(entry, word, want, now);
    if (found_fitness == Fitness::fit && want.fresh && !fresh_enough(entry, word, borrower.since_)) {
      found_fitness = Fitness::unwanted;
    }
    if (found_fitness == Fitness::fit) return Verdict::take;
    if (found_fitness != Fitness::unwanted) return Verdict::doomed;
    work.idle_refused = true;
    return Verdict::skip;
  };
  for (;;) {
    const auto found = search(borrower.loop_, false, judge);
    if (found.entry == nullptr) return false;
    if (found.taken) {
      grant(*found.entry, borrower, found.before.home(), work);
      return true;
    }
    if (end_worn(*found.entry, found.before, cause_of(found_fitness), work))
      work.why = replaces(cause_of(found_fitness));
  }
}

// ---- arrival, on the borrower's loop ----

void Grant::arrive(Instant now) {
  entry->value.owner->arrive(*this, now);
}

void Destination::Impl::arrive(Grant& grant, Instant now) {
  Chair& entry = *grant.entry;
  if (entry.sharing().stays) return arrive_stream(grant, now);
  Borrower& borrower = *grant.borrower;
  const Word word(entry.word.load(std::memory_order_acquire));
  const bool meant = borrower.ticket_ == grant.ticket;
  const bool watched = !grant.moved || house.attach(*entry.value.pooled, entry.index, word.generation());
  // A new connection serves once whatever its life; one that served is judged again.
  const bool worn_out = word.uses() > 1 && worn(entry, word.uses() - 1, now) != Fitness::fit;
  if (!meant || !watched || worn_out) shares.give(grant.share);
  if (watched && !meant) return release(entry, false, now);
  if (!watched || worn_out) {
    const Closed cause = watched ? cause_of(worn(entry, word.uses() - 1, now)) : Closed::error;
    Errands work;
    std::optional<Fault> no;
    {
      const std::scoped_lock lock(mutex);
      if (meant) no = rejoin(borrower);
      end(entry, cause, work);
    }
    finish(work, now, replaces(cause));
    if (no) tell(borrower, std::move(*no));
    return;
  }
  hand_over(borrower, entry, word, grant.to, now);
}

void Destination::Impl::hand_over(Borrower& borrower, Chair& entry, Word word, LoopId here, Instant now) {
  borrower.ticket_ = 0;
  Lease lease;
  lease.share_ = share_of(borrower.want_);  // as its grant
  lease.tunnel_place_ = borrower.want_.tunnel;
  fill(lease, entry, word, now - borrower.since_, now, here);
  borrower.on_lease(std::move(lease));
}

// Under the mutex: what it was given was no good; back to where it stood. A Fault: it cannot, and is to be told so.
std::optional<Fault> Destination::Impl::rejoin(Borrower& borrower) {
  if (stopped()) return told(FaultKind::draining, Side::self, "the pool is stopping");
  if (!ready_to_wait()) return told(FaultKind::overloaded, Side::self, "no memory to wait in line");
  line.join(borrower);
  attention.fetch_add(1, std::memory_order_seq_cst);
  return std::nullopt;
}

}  // namespace carpool::pool
