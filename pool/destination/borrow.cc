// Borrowing: from the request to the lease, which is an idle connection now or follows a wait in the queue.
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

Reusability Destination::Impl::reusability_of(const SlotEntry& entry, std::uint32_t uses, Instant now) const {
  if (entry.value.expires_at.get() <= now) return Reusability::expired;
  const std::uint32_t max_usage = live.max_usage();
  if (max_usage != 0 && uses >= max_usage) return Reusability::used_up;
  return Reusability::fit;
}

bool Destination::Impl::past_idle_timeout(const SlotEntry& entry, Instant now) const {
  const Duration idle_timeout = live.idle_timeout();
  return idle_timeout > Duration::zero() && now - entry.value.idle_since.get() > idle_timeout;
}

// A connection that has served stays idle for pool.quarantine before its next borrower.
bool Destination::Impl::in_quarantine(const SlotEntry& entry, EntryWord word, Instant now) const {
  const Duration quarantine = live.quarantine();
  return quarantine > Duration::zero() && word.uses() != 0 && now - entry.value.idle_since.get() < quarantine;
}

Reusability Destination::Impl::reusability_for(const SlotEntry& entry, EntryWord word, const BorrowRequest& want,
                                               Instant now) const {
  if (want.kind != ProtocolMask::any && !accepts(want.kind, protocol_of(entry))) return Reusability::unwanted;
  if (const Reusability reusability = reusability_of(entry, word.uses(), now); reusability != Reusability::fit)
    return reusability;
  if (word.borrowed()) return Reusability::fit;  // a session in use is not idle
  // `now` is the calling loop's turn time: it may be earlier than another loop's release.
  const Duration idle = now - entry.value.idle_since.get();
  if (!keeps_idle() && past_idle_timeout(entry, now)) return Reusability::idle_too_long;
  if (past_idle_limit(entry, now)) return Reusability::idle_too_long;
  if (in_quarantine(entry, word, now)) return Reusability::unwanted;
  // A session reads its socket while it is idle and checks its peer before its next request, so its idle time is
  // irrelevant.
  if (protocol_of(entry) == Protocol::h2) return Reusability::fit;
  if (want.max_idle < Duration::zero()) return word.uses() == 0 ? Reusability::fit : Reusability::unwanted;
  return idle > want.max_idle ? Reusability::unwanted : Reusability::fit;
}

std::variant<Lease, Waiting, Fault> Destination::Impl::borrow(Borrower& borrower, const BorrowRequest& want,
                                                              Instant now) {
  std::variant<Lease, Waiting, Fault> result;  // an empty lease; the one variable of every return, so it is never moved
  const LoopId here = environment.here();
  OpenCause why = OpenCause::all_busy;
  // A borrower that arrives while others wait is enqueued (no barging). Tunnels are counted, which enqueue() does.
  if (!want.new_connection_only && !want.tunnel && !waiting() && shares.acquire(share_of(want))) {
    Lease& lease = *std::get_if<Lease>(&result);
    if (acquire_idle(lease, here, want, now, why)) {
      lease.share_ = share_of(want);
      lease.caller_ = want.caller;
      if (live.maximize()) dial_one_more(now);
      return result;
    }
    shares.release(share_of(want));  // schedule(), called next, serves every waiter
  }
  CARPOOL_ASSERT(borrower.ticket_ == 0);
  borrower.want_ = want;
  if (want.client == 0) borrower.want_.client = borrower.client();
  result = enqueue(borrower, here, now, why);
  return result;
}

bool Destination::Impl::acquire_idle(Lease& lease, LoopId here, const BorrowRequest& want, Instant now,
                                     OpenCause& why) {
  bool relisted = false;
  const bool taken = search_and_acquire(lease, here, want, now, why, relisted);
  // Pairs with enqueue(): a concurrent search missed the entry while it was unlisted.
  if (relisted) after_idle(nullptr, now);
  return taken;
}

// Sets `relisted` if a search listed an entry again.
bool Destination::Impl::search_and_acquire(Lease& lease, LoopId here, const BorrowRequest& want, Instant now,
                                           OpenCause& why, bool& relisted) {
  Reusability reusability = Reusability::fit;
  const auto matcher = [&](const SlotEntry& entry, EntryWord word) {
    reusability = reusability_for(entry, word, want, now);
    if (reusability == Reusability::fit) return Match::take;
    return reusability == Reusability::unwanted ? Match::skip : Match::evict;
  };
  for (;;) {
    const auto found = search(here, Searcher::own_loop, now, matcher);
    relisted |= found.relisted;
    if (found.entry == nullptr) return false;
    SlotEntry& entry = *found.entry;
    if (found.taken) {
      const bool moved = found.after.home() != found.before.home();
      if (moved) environment.detach(*entry.value.pooled, found.before.home());
      if (!moved || environment.attach(*entry.value.pooled, entry.index, found.after.generation())) {
        lent_at(entry);
        fill(lease, entry, found.after, Duration::zero(), now, here);
        return true;
      }
      discard(entry, CloseCause::error, now);
      continue;
    }
    const CloseCause cause = cause_of(reusability);
    DeferredActions actions;
    {
      const Held lock(mutex);
      if (end_expired(entry, found.before, cause, actions)) why = replaces(cause);
    }
    run_actions_and_serve(actions, now, why);
  }
}

// Tries again after each granted connection that could not be attached to this loop. These may be all of the pool's
// connections, so the stack does not grow with their number.
std::variant<Lease, Waiting, Fault> Destination::Impl::enqueue(Borrower& borrower, LoopId here, Instant now,
                                                               OpenCause why) {
  for (;;) {
    DeferredActions actions;
    actions.caller = &borrower;
    bool too_many = false;
    {
      const Held lock(mutex);
      if (std::optional<Fault> refused = may_not_wait(borrower)) return std::move(*refused);
      borrower.loop_ = here;
      borrower.asked_ = borrower.since_ = now;
      borrower.ticket_ = next_ticket();
      borrower.virtual_finish_time_ = 0;
      push_waiter(borrower);
      schedule(actions, now, why);
      const bool waits = WaitQueue::in(borrower) && !borrower.awaits_place_;
      too_many = waits && (queue_full(actions, now) || cannot_be_served(actions));
      if (waits && !too_many && pool.full() && queue.size() > streams_coming()) ++ledger.waited_at_size;
    }
    run_actions_and_serve(actions, now, actions.why);
    if (actions.callers != nullptr) {
      std::variant<Lease, Waiting, Fault> result;
      if (lend_to_caller(*std::get_if<Lease>(&result), borrower, actions, now, here)) return result;
      continue;
    }
    if (too_many) return reject_caller(borrower, actions, now);
    return Waiting{};
  }
}

// Returns the reason why the borrower cannot wait, or nullopt.
std::optional<Fault> Destination::Impl::may_not_wait(const Borrower& borrower) {
  if (std::optional<Fault> ended = why_ended()) return ended;
  if (!ready_to_wait()) return make_fault(FaultKind::overloaded, Side::self, "no memory for the wait queue");
  const BorrowRequest& want = borrower.want_;
  const bool awaits_place = want.tunnel && tunnels.must_wait(limits.max_tunnels);
  // A retry is exempt: its first attempt was admitted.
  if (awaits_place && !want.new_connection_only && queue.others() + tunnels.waiters.others() >= limits.max_waiting) {
    if (limits.half_tunnels && auto_size != nullptr && lends()) auto_size->note_turned_away();
    return make_fault(FaultKind::queue_full, Side::self, "too many tunnels");
  }
  return std::nullopt;
}

// Fills `lease` with the connection that the pool granted to the borrower inside borrow(). Returns false if that
// connection cannot be used on this loop; it is discarded.
bool Destination::Impl::lend_to_caller(Lease& lease, const Borrower& borrower, DeferredActions& actions, Instant now,
                                       LoopId here) {
  if (SlotEntry* entry = attach_callers(actions)) {
    lease.tunnel_place_ = borrower.want_.tunnel;
    lease.share_ = share_of(borrower.want_);
    lease.caller_ = borrower.want_.caller;
    lease.trial_ = actions.callers_trial;
    fill(lease, *entry, actions.callers_word, Duration::zero(), now, here);
    return true;
  }
  if (borrower.want_.tunnel) return_tunnel_place(now);
  shares.release(share_of(borrower.want_));
  returned_at(*actions.callers);
  trial_over(actions.callers_trial);
  discard(*actions.callers, CloseCause::error, now);
  return false;
}

// Rejects a waiter that found the queue full or cannot be served, unless it was served or a place became free since.
std::variant<Lease, Waiting, Fault> Destination::Impl::reject_caller(Borrower& borrower, DeferredActions& actions,
                                                                     Instant now) {
  std::optional<Fault> fault;
  {
    const Held lock(mutex);
    if (!WaitQueue::in(borrower) || !(queue_full(actions, now) || cannot_be_served(actions))) return Waiting{};
    remove_waiter(borrower);
    borrower.ticket_ = 0;
    if (auto_size != nullptr && pool.full()) auto_size->note_turned_away();
    fault = rejection_fault(actions);
  }
  if (borrower.want_.tunnel) return_tunnel_place(now);
  return std::move(*fault);
}

// Returns true if memory for a connection is exhausted, and neither an open connection nor a dial in progress can
// serve.
bool Destination::Impl::cannot_be_served(const DeferredActions& actions) const {
  return actions.no_memory && serving() == 0 && coming() == 0;
}

Fault Destination::Impl::rejection_fault(const DeferredActions& actions) {
  if (cannot_be_served(actions)) {
    ledger.fail(FailureReason::budget);
    return make_fault(FaultKind::overloaded, Side::self, "no memory or no slot left for another connection");
  }
  if (actions.over_budget) return make_fault(FaultKind::budget, Side::self, "no connection left under pool.total");
  if (paused()) return make_fault(FaultKind::queue_full, Side::self, kPausedByOperator);
  return make_fault(FaultKind::queue_full, Side::self, cool_down.active() ? kCoolingDown : "wait queue full");
}

// Returns the grant of a borrower that is still inside borrow(), or null if it could not be attached to this loop.
SlotEntry* Destination::Impl::attach_callers(DeferredActions& actions) {
  SlotEntry& entry = *actions.callers;
  if (entry.multiplexing().pinned || actions.callers_from == environment.here()) return &entry;
  environment.detach(*entry.value.pooled, actions.callers_from);
  const std::uint32_t generation = EntryWord(entry.word.load(std::memory_order_relaxed)).generation();
  return environment.attach(*entry.value.pooled, entry.index, generation) ? &entry : nullptr;
}

// max_waiting limits borrowers minus connections in progress, which are not lent during a pause. Retries are exempt:
// their first attempt was admitted.
bool Destination::Impl::queue_full(const DeferredActions& actions, Instant now) const {
  if (actions.caller->want_.new_connection_only) return false;
  if (!lends()) return queue.others() > limits.max_waiting;
  std::uint32_t coming_up = streams_coming() + pending.inspecting_since(actions.inspections_ended);
  // While a dial's protocol or success is unknown, few are started; the other places under the cap count as coming. A
  // trial is one.
  const bool more_to_come = supply.expected() == 0 || allowed_dials(now) != CircuitBreaker::kNoLimit;
  if (more_to_come && !cool_down.active() && (budget == nullptr || !budget->full())) {
    coming_up += pool.cap() > pool.in_use() ? pool.cap() - pool.in_use() : 0;
  }
  const std::uint32_t room = coming_up > queue.retries() ? coming_up - queue.retries() : 0;
  return queue.others() > room + limits.max_waiting;
}

void Destination::Impl::cancel(Borrower& borrower, Instant now) {
  if (borrower.ticket_ == 0) return;
  bool has_place = borrower.want_.tunnel;
  {
    const Held lock(mutex);
    if (WaitQueue::in(borrower)) {
      has_place = has_place && !borrower.awaits_place_;
      remove_waiter(borrower);
    }
    borrower.ticket_ = 0;  // a grant in flight sees this on arrival and passes on
  }
  has_place ? return_tunnel_place(now) : serve_starved(now);
}

void Destination::Impl::fill(Lease& lease, SlotEntry& entry, EntryWord word, Duration waited, Instant now,
                             LoopId here) {
  if (!lease.probe_) {
    LoopCounters& counters_here = count(here);
    counters_here.borrow();
    counters_here.last_now.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  lease.destination_ = &self;
  lease.entry_ = &entry;
  lease.pooled_ = entry.value.pooled;
  lease.waited_ = waited;
  lease.leased_at_ = now;
  lease.index_ = entry.index;
  lease.uses_before_ = word.uses() == EntryWord::kMaxUses ? EntryWord::kMaxUses : word.uses() - 1;
  lease.opened_ = entry.value.opened.load(std::memory_order_relaxed);
  if (const Multiplexing multiplexing = entry.multiplexing(); multiplexing.pinned) {
    lease.shared_ = true;
    lent_stream(word, multiplexing.max_users, here, now);
  }
  if (endpoints.balance() != Endpoints::Balance::even && !lease.probe_) spread_out(entry, word, now);
}

// maximize: opens connections up to the cap even though one was available.
void Destination::Impl::dial_one_more(Instant now) {
  if (pool.full() || (budget != nullptr && budget->full())) return;
  DeferredActions actions;
  {
    const Held lock(mutex);
    if (stopped() || !lends() || backoff.blocks(now) || allowed_dials(now) == 0) return;
    SlotEntry* entry = reserve(actions);
    if (entry != nullptr) record_dial(*entry, ProtocolMask::any, OpenCause::all_busy, actions, now);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

}  // namespace carpool::pool
