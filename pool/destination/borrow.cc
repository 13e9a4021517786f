// From the wish to the lease: an idle connection now, or a place in line.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Fitness Destination::Impl::worn(const Chair& entry, std::uint32_t uses, Instant now) const {
  if (entry.value.expires_at.get() <= now) return Fitness::expired;
  const std::uint32_t max_usage = live.max_usage();
  if (max_usage != 0 && uses >= max_usage) return Fitness::used_up;
  return Fitness::fit;
}

Fitness Destination::Impl::fitness(const Chair& entry, Word word, const Want& want, Instant now) const {
  if (want.kind != Kinds::any && !accepts(want.kind, kind_of(entry))) return Fitness::unwanted;
  if (const Fitness wear = worn(entry, word.uses(), now); wear != Fitness::fit) return wear;
  if (word.borrowed()) return Fitness::fit;  // a session in use: it did not rest
  // `now` belongs to the calling loop's turn: it may be earlier than another loop's release.
  const Duration idle = now - entry.value.idle_since.get();
  const Duration idle_timeout = live.idle_timeout();
  if (idle_timeout > Duration::zero() && idle > idle_timeout) return Fitness::idle_too_long;
  if (overdue(entry, now)) return Fitness::idle_too_long;
  const Duration quarantine = live.quarantine();
  if (quarantine > Duration::zero() && idle < quarantine && word.uses() != 0) return Fitness::unwanted;
  // Sessions say before they go (GOAWAY) and are not meant.
  if (want.max_idle < Duration::zero()) {
    return word.uses() == 0 || kind_of(entry) == Kind::h2 ? Fitness::fit : Fitness::unwanted;
  }
  return idle > want.max_idle ? Fitness::unwanted : Fitness::fit;
}

std::variant<Lease, Waiting, Fault> Destination::Impl::borrow(Borrower& borrower, const Want& want, Instant now) {
  std::variant<Lease, Waiting, Fault> answer;  // an empty lease; the one variable of every return, so it is never moved
  const LoopId here = house.here();
  Opened why = Opened::all_busy;
  // Who comes while others wait joins the line: no barging. Tunnels are counted, which the line does.
  if (!want.fresh && !want.tunnel && !waiting() && shares.take(share_of(want))) {
    Lease& lease = *std::get_if<Lease>(&answer);
    if (take_idle(lease, here, want, now, why)) {
      lease.share_ = share_of(want);
      if (live.maximize()) dial_one_more(now);
      return answer;
    }
    shares.give(share_of(want));  // plan() looks at everybody in line, and follows
  }
  CARPOOL_ASSERT(borrower.ticket_ == 0);
  borrower.want_ = want;
  if (want.client == 0) borrower.want_.client = borrower.client();
  answer = stand_in_line(borrower, here, now, why);
  return answer;
}

bool Destination::Impl::take_idle(Lease& lease, LoopId here, const Want& want, Instant now, Opened& why) {
  Fitness found_fitness = Fitness::fit;
  const auto judge = [&](const Chair& entry, Word word) {
    found_fitness = fitness(entry, word, want, now);
    if (found_fitness == Fitness::fit) return Verdict::take;
    return found_fitness == Fitness::unwanted ? Verdict::skip : Verdict::doomed;
  };
  for (;;) {
    const auto found = search(here, true, judge);
    // The pair of stand_in_line(): who looked meanwhile did not see what was hidden.
    if (found.relisted && !found.taken) came_to_rest(now);
    if (found.entry == nullptr) return false;
    Chair& entry = *found.entry;
    if (found.taken) {
      const bool moved = found.after.home() != found.before.home();
      if (moved) house.detach(*entry.value.pooled, found.before.home());
      if (!moved || house.attach(*entry.value.pooled, entry.index, found.after.generation())) {
        fill(lease, entry, found.after, Duration::zero(), now, here);
        if (found.relisted) came_to_rest(now);
        return true;
      }
      discard(entry, Closed::error, now);
      continue;
    }
    const Closed cause = cause_of(found_fitness);
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      if (end_worn(entry, found.before, cause, work)) why = replaces(cause);
    }
    finish(work, now, why);
  }
}

std::variant<Lease, Waiting, Fault> Destination::Impl::stand_in_line(Borrower& borrower, LoopId here, Instant now,
                                                                     Opened why) {
  Errands work;
  work.caller = &borrower;
  bool too_many = false;
  {
    const std::scoped_lock lock(mutex);
    if (stopped()) return told(FaultKind::draining, Side::self, "the pool is stopping");
    if (!ready_to_wait()) return told(FaultKind::overloaded, Side::self, "no memory to wait in line");
    if (borrower.want_.tunnel && !take_tunnel_place()) {
      return told(FaultKind::queue_full, Side::self, "too many tunnels");
    }
    borrower.loop_ = here;
    borrower.since_ = now;
    borrower.ticket_ = next_ticket();
    borrower.turn_ = 0;
    line.join(borrower);
    attention.fetch_add(1, std::memory_order_seq_cst);  // then plan() looks through the entries: see destination_impl.h
    plan(work, now, why);
    too_many = Line::in(borrower) && (crowded(now) || helpless(work));
  }
  finish(work, now, work.why);
  if (work.callers != nullptr) {
    if (Chair* entry = take_callers(work)) {
      std::variant<Lease, Waiting, Fault> answer;
      Lease& lease = *std::get_if<Lease>(&answer);
      lease.tunnel_place_ = borrower.want_.tunnel;
      lease.share_ = share_of(borrower.want_);
      fill(lease, *entry, Word(entry->word.load(std::memory_order_relaxed)), Duration::zero(), now, here);
      return answer;
    }
    if (borrower.want_.tunnel) return_tunnel_place();
    shares.give(share_of(borrower.want_));
    discard(*work.callers, Closed::error, now);
    return stand_in_line(borrower, here, now, why);
  }
  if (!too_many) return Waiting{};
  const std::scoped_lock lock(mutex);
  // Served meanwhile, or room was made.
  if (!Line::in(borrower) || !(crowded(now) || helpless(work))) return Waiting{};
  line.leave(borrower);
  attention.fetch_sub(1, std::memory_order_seq_cst);
  borrower.ticket_ = 0;
  if (borrower.want_.tunnel) return_tunnel_place();
  offer_spare_dials();
  return why_not(work);
}

// Under the mutex: there was no memory for a connection, and none that there is or will be could serve.
bool Destination::Impl::helpless(const Errands& work) const {
  return work.no_memory && serving() == 0 && coming() == 0;
}

Fault Destination::Impl::why_not(const Errands& work) {
  if (helpless(work)) {
    ledger.fail(Failed::budget);
    return told(FaultKind::overloaded, Side::self, "no memory or no number left for another connection");
  }
  if (work.hungry) return told(FaultKind::budget, Side::self, "no connection left under the total");
  return told(FaultKind::queue_full, Side::self, "wait queue full");
}

// The grant of a borrower that is still in its borrow() call; null: it could not be watched here.
Chair* Destination::Impl::take_callers(Errands& work) {
  Chair& entry = *work.callers;
  if (entry.sharing().stays || work.callers_from == house.here()) return &entry;
  house.detach(*entry.value.pooled, work.callers_from);
  const std::uint32_t generation = Word(entry.word.load(std::memory_order_relaxed)).generation();
  return house.attach(*entry.value.pooled, entry.index, generation) ? &entry : nullptr;
}

// Only those count as waiting for whom no connection is on its way. Replays are not refused: they were admitted once.
bool Destination::Impl::crowded(Instant now) const {
  std::uint32_t coming_up = supply() + inspecting();
  // Not known yet what a dial brings, or whether it succeeds: few are begun, but for whom there is a place there will
  // be one.
  const bool more_to_come = expected == 0 || dial_room(now) != Circuit::kNoLimit;
  if (more_to_come && (budget == nullptr || !budget->full())) {
    coming_up += pool.cap() > pool.in_use() ? pool.cap() - pool.in_use() : 0;
  }
  const std::uint32_t room = coming_up > line.replays() ? coming_up - line.replays() : 0;
  return line.others() > room + limits.max_waiting;
}

void Destination::Impl::cancel(Borrower& borrower, Instant now) {
  if (borrower.ticket_ == 0) return;
  if (borrower.want_.tunnel) return_tunnel_place();
  {
    const std::scoped_lock lock(mutex);
    if (Line::in(borrower)) {
      line.leave(borrower);
      attention.fetch_sub(1, std::memory_order_seq_cst);
      offer_spare_dials();
    }
    borrower.ticket_ = 0;  // what is in the mail finds out and passes on
  }
  serve_starved(now);
}

void Destination::Impl::fill(Lease& lease, Chair& entry, Word word, Duration waited, Instant now, LoopId here) {
  LoopCounters& counters_here = count(here);
  counters_here.borrow();
  counters_here.last_now.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  lease.destination_ = &self;
  lease.entry_ = &entry;
  lease.pooled_ = entry.value.pooled;
  lease.waited_ = waited;
  lease.leased_at_ = now;
  lease.index_ = entry.index;
  lease.uses_before_ = word.uses() == Word::kMaxUses ? Word::kMaxUses : word.uses() - 1;
  lease.opened_ = entry.value.opened.load(std::memory_order_relaxed);
  if (const Sharing sharing = entry.sharing(); sharing.stays) {
    lease.shared_ = true;
    lent_stream(word, sharing.most, here, now);
  }
}

// maximize: connections are opened up to the cap though there was one to lend.
void Destination::Impl::dial_one_more(Instant now) {
  if (pool.full() || (budget != nullptr && budget->full())) return;
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    if (stopped() || paused() || backoff.holds(now) || dial_room(now) == 0) return;
    Chair* entry = reserve(work);
    if (entry != nullptr) book_dial(*entry, Kinds::any, Opened::all_busy, work, now);
  }
  finish(work, now, Opened::all_busy);
}

bool Destination::Impl::take_tunnel_place() {
  // relaxed: a number with a limit, nothing is published by it.
  std::uint32_t taken = tunnels.load(std::memory_order_relaxed);
  do {
    if (limits.max_tunnels != 0 && taken >= limits.max_tunnels) return false;
  } while (!tunnels.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));
  return true;
}

}  // namespace carpool::pool
