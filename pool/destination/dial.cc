// Dialing. A dial is not bound to the borrower that caused it: while fewer connections are in progress than borrowers
// wait and the cap allows, one more is dialed; the head of the queue gets whichever opens first.
#include <algorithm>
#include <new>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// Must be called when capacity may have become free. Serves the waiters, then starved destinations.
void Destination::Impl::serve_waiters(Instant now, OpenCause why) {
  serve_own_waiters(now, why);
  serve_starved(now);
}

// Serves the waiters until no more can be done.
void Destination::Impl::serve_own_waiters(Instant now, OpenCause why) {
  while (waiting()) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      schedule(actions, now, why);
    }
    if (!run_actions(actions) && !actions.more) return;
    why = actions.why;
  }
}

void Destination::Impl::wake(Instant now) {
  {
    const Held lock(mutex);
    backoff.woken();
    probe_wake = trial_wake = {};
    // the wake-up arrived; a connection that is still in quarantine or under inspection requests a new one
    quarantine_wake = {};
  }
  serve_waiters(now);
}

void Destination::Impl::schedule(DeferredActions& actions, Instant now, OpenCause why) {
  actions.why = why;
  actions.inspections_ended = pending.inspections_ended();  // before match_idle() searches
  if (stopped()) return end_some_idle(CloseCause::shutdown, actions);
  if (is_replaced()) return end_some_idle(CloseCause::config_changed, actions);
  cool_down.update(now);
  wake_for_trial(actions, now);
  if (active_pause.drains) return end_some_idle(CloseCause::drained, actions);
  if (!lends()) return;
  admit_tunnels(actions, now);
  redial_old(actions, now);
  match_idle(actions, now);
  if (live.quarantine() > Duration::zero() && !queue.empty()) wake_for_quarantined(actions, now);
  dial_for_demand(actions, now);
  if (actions.shared) dial_ahead(OpenCause::streams_exhausted, actions, now);
  cool_down.update(now);  // the trial's time begins if one of these leases is a trial
  wake_for_trial(actions, now);
}

void Destination::Impl::dial_for_demand(DeferredActions& actions, Instant now) {
  if (queue.empty()) {
    made_room = 0;
    return;
  }
  // Connections under inspection may be idle again soon, or are since the search missed them: they count as coming.
  const std::uint32_t examined =
      queue.size() > supply.dials() && !pool.full() ? pending.inspecting_since(actions.inspections_ended) : 0;
  while (const std::optional<ProtocolMask> kind = missing_dial(examined)) {
    // Another connection may serve or be released soon: do not dial a failing origin repeatedly.
    if (backoff.blocks(now) && (serving() != 0 || supply.dials() != 0)) {
      if (backoff.request_wake_once()) actions.wake_at = std::min(actions.wake_at, backoff.until());
      return;
    }
    if (!lends()) return;                                   // the trial has a connection
    if (cool_down.active() && supply.dials() != 0) return;  // the trial needs one
    if (!actions.step()) return;
    if (allowed_dials(now) == 0) return hold_back(actions, now);
    SlotEntry* entry = reserve(actions);
    if (entry == nullptr) {
      if (!evict_for(*kind, actions, now)) return;
      continue;
    }
    record_dial(*entry, *kind, cause_of_dial(*kind, actions), actions, now);
  }
}

// The circuit breaker allows no dial. Open connections and dials in progress serve the waiters; if
// there are none, the waiters fail with the last dial's error.
void Destination::Impl::hold_back(DeferredActions& actions, Instant now) {
  if (circuit.last_failed() && supply.dials() == 0 && serving() == 0) {
    for (; !queue.empty() && actions.step(); ++undialed) refuse(*queue.first(), last_failure, actions);
    return;
  }
  const Instant opens = circuit.last_failed() ? circuit.opens_at(supply.dials()) : kNever;
  if (opens == kNever || (probe_wake > now && probe_wake <= opens)) return;
  probe_wake = opens;
  actions.wake_at = std::min(actions.wake_at, opens);
}

void Destination::Impl::note_dial_failure(const Fault& fault, Instant now) {
  ledger.fail(reason_of(fault));
  // The origin works, but refuses what one request needs: that request fails, unless an open connection may serve it.
  const bool of_request = fault.side == Side::client;
  if (of_request && !h1_serves()) return;
  backoff.failed(now);
  if (of_request || fault.kind == FaultKind::rate_limited) return;  // in the latter case the origin was not asked
  circuit.failed(now);
  probing.store(true, std::memory_order_relaxed);
  last_failure = copy_of(fault);
  try {
    last_failure.detail += " (error of the last dial; the next dial begins soon)";
  } catch (const std::bad_alloc&) {  // the kind is sufficient
  }
}

// Returns the protocols of the next dial that the waiters need, or nullopt. Waiters for HTTP/1.1 only get a dial each;
// the others share the streams of a session.
std::optional<ProtocolMask> Destination::Impl::missing_dial(std::uint32_t examined) {
  // Places being freed serve the waiters when they are free; a connection does not help a waiter without a share.
  const std::uint32_t spoken_for =
      std::min(examined, queue.others()) + pending.disposing() + shares.held_back(queue.by_class());
  const std::uint32_t h1 = queue.wanting(ProtocolMask::h1_only);
  const std::uint32_t wide = queue.size() - h1;
  const std::uint32_t covered = supply.wide_dials() * supply.streams_a_dial();
  const std::uint32_t wide_lack = wide > covered ? wide - covered : 0;
  const std::uint32_t h1_lack = h1 > supply.h1_dials() ? h1 - supply.h1_dials() : 0;
  if (wide_lack + h1_lack <= spoken_for) return std::nullopt;
  // While the protocol is unknown, two dials are enough to find out.
  const bool enough = supply.expected() == 0 && supply.wide_dials() >= 2;
  // In queue order: at the cap the first dial decides which waiter is served.
  if (h1_lack != 0 && (wide_lack == 0 || enough || queue.first()->want_.kind == ProtocolMask::h1_only))
    return ProtocolMask::h1_only;
  if (wide_lack == 0 || enough) return std::nullopt;
  return queue.wanting(ProtocolMask::any) != 0 ? ProtocolMask::any : ProtocolMask::h2_only;
}

void Destination::Impl::record_dial(SlotEntry& entry, ProtocolMask kind, OpenCause cause, DeferredActions& actions,
                                    Instant now) {
  Slot& slot = entry.value;
  if (slot.owner == nullptr) {  // once: a message of an earlier dial may be in flight and uses both
    slot.owner = this;
    slot.cancel_message.entry = &entry;
  }
  slot.asked = kind;
  slot.opened.store(cause, std::memory_order_relaxed);
  slot.opened_at.set(now);
  ledger.open(cause, pool.in_use());
  circuit.began(now);
  supply.dial_begun({kind, cause});
  slot.dialed_on = environment.here();
  slot.cancel_message.cancelled = false;
  if (for_waiters(cause)) cancellable(entry).push_back(slot.cancel_message);
  if (kind != ProtocolMask::h1_only && supply.expected() != 1) count_local(entry, environment.here());
  actions.dials.push(entry);
}

// Returns a place within both the cap and the budget, or null.
SlotEntry* Destination::Impl::reserve(DeferredActions& actions) {
  SlotEntry* entry = nullptr;
  try {
    entry = pool.reserve();
  } catch (const std::bad_alloc&) {
    actions.no_memory = true;
  }
  if (entry == nullptr || budget == nullptr || budget->acquire(*this)) return entry;
  CARPOOL_ASSERT(pool.close(*entry));
  pool.vacate(*entry);
  ++ledger.version;  // a scan may have seen it
  return nullptr;
}

// No place is left: closes the longest-idle connection that no waiter would accept. An acceptable one was published a
// moment ago: the thread that did so serves the waiters with it.
bool Destination::Impl::evict_for(ProtocolMask kind, DeferredActions& actions, Instant now) {
  for (const Protocol held_kind : {Protocol::h1, Protocol::h2}) {
    while (SlotEntry* entry = longest_idle_unwanted(held_kind, actions, now)) {
      const EntryWord word(entry->word.load(std::memory_order_acquire));
      if (!end_idle(*entry, word, CloseCause::surplus, actions)) continue;
      // Not counted for a retry, nor where no waiter accepts the protocol, nor for a session.
      const bool refused = held_kind == Protocol::h1 && queue.longest_accepted_idle(held_kind) != Duration::min();
      if (queue.retries() < streams_coming() && refused) ++made_room;
      return true;
    }
  }
  if (auto_size != nullptr && pool.full()) auto_size->note_at_size();
  if (cancel_dial_for_slot(actions, now)) return false;
  actions.over_budget = budget != nullptr && !pool.full() && !actions.no_memory;
  // Under the mutex: the last waiter that leaves after this finds it registered. See offer_surplus_dials().
  const bool starved_before = actions.over_budget && budget->register_starved(*this);
  // A slot of another destination is worth a wait, but if none came since the last check, a session makes room.
  if (kind == ProtocolMask::h1_only && (!actions.over_budget || starved_before)) drain_for_h1(actions);
  return false;
}

OpenCause Destination::Impl::cause_of_dial(ProtocolMask kind, DeferredActions& actions) {
  if (queue.retries() > supply.dials()) return OpenCause::replay;
  if (origin.scheme == Scheme::tcp) return OpenCause::tunnel;
  if (limits.single_use && ledger.created != 0) return OpenCause::policy;  // each borrower needs a new connection
  if (made_room != 0) {
    --made_room;
    return OpenCause::policy;
  }
  if (actions.why != OpenCause::all_busy) return std::exchange(actions.why, OpenCause::all_busy);
  if (pool.in_use() == 1 + actions.ended.size()) return OpenCause::first;  // the pool is empty except for this entry
  if (kind != ProtocolMask::h1_only && supply.held(Protocol::h2) != 0) return OpenCause::streams_exhausted;
  // While the protocol is unknown, another loop's dial may result in a session, and this loop's then in its own.
  const bool no_local_session = count(environment.here()).sessions.load(std::memory_order_relaxed) == 0;
  if (kind != ProtocolMask::h1_only && supply.expected() == 0 && supply.wide_dials() != 0 && no_local_session)
    return OpenCause::loop_local;
  return actions.idle_refused ? OpenCause::policy : OpenCause::all_busy;
}

// ---- completion of a dial ----

void Destination::Impl::dialed(const Reservation& reservation, std::unique_ptr<PooledConnection> made, Instant now) {
  SlotEntry& entry = slot_entry(reservation.index());
  const Protocol kind = made->protocol();
  Multiplexing multiplexing{kind == Protocol::h2 ? made->streams() : 1, kind == Protocol::h2};
  PooledConnection* pooled = made.release();  // owned by the entry from here on; ends in Environment::dispose
  const bool clean = pooled->clean_for_reuse();
  DeferredActions actions;
  bool becomes_idle = false;
  {
    const Held lock(mutex);
    if (multiplexing.pinned)
      multiplexing.max_users = first_streams.begin(entry.value.first_streams, multiplexing.max_users);
    supply.opened(dial_ended(entry), kind);
    ++ledger.created;
    backoff.succeeded();
    circuit.succeeded(now);
    probing.store(false, std::memory_order_relaxed);
    entry.value.pooled = pooled;
    entry.value.endpoint.store(pooled->endpoint(), std::memory_order_relaxed);
    entry.value.expires_at.set(expiry(entry, now));
    entry.value.idle_since.set(now);
    entry.value.idle_probe.store(false, std::memory_order_relaxed);
    const Duration took = now - entry.value.opened_at.get();
    dial_time = dial_time == Duration::zero() ? took : dial_time + (took - dial_time) / 8;
    entry.value.established_at = now;
    learn_streams(entry.value.asked, kind, multiplexing.max_users, actions);
    becomes_idle = kind == Protocol::h2 ? enable_session(entry, multiplexing, clean, actions, now)
                                        : enable_h1(entry, clean, actions);
    replaced(entry, actions);
    schedule(actions, now, OpenCause::all_busy);
    if (kind == Protocol::h2) cancel_surplus_beside(entry, actions, now);
  }
  if (becomes_idle) offer_slots();
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

// Returns true if the connection is now idle. One that already has readable data or EOF is still given to one waiting
// borrower, which sees the origin's error.
bool Destination::Impl::enable_h1(SlotEntry& entry, bool clean, DeferredActions& actions) {
  const LoopId here = environment.here();
  const std::optional<CloseCause> ends = forced_close_cause(entry);
  Borrower* borrower = ends || !lends() ? nullptr : next_borrower(Protocol::h1);
  const bool becomes_idle = !ends && borrower == nullptr && clean;
  CARPOOL_ASSERT(pool.enable(entry, here, !becomes_idle, Multiplexing{}));
  if (ends) {
    end(entry, *ends, actions);
  } else if (borrower != nullptr) {
    const EntryWord enabled(entry.word.load(std::memory_order_relaxed));
    Change change{true, enabled, enabled};
    if (borrower->loop_ != here) change = try_hand_off(entry.word, borrower->loop_, Use::unserved);
    CARPOOL_ASSERT(change);
    grant(entry, *borrower, change, actions);
  } else if (!clean) {
    end(entry, CloseCause::peer_closed, actions);
  }
  return becomes_idle;
}

// Unregisters a dial that ended and returns its description for Supply.
Supply::Dial Destination::Impl::dial_ended(SlotEntry& entry) {
  static_cast<ListHook<DialTag>&>(entry.value.cancel_message).unlink();
  uncount_local(entry);
  return {entry.value.asked, entry.value.opened.load(std::memory_order_relaxed)};
}

void Destination::Impl::dial_failed(const Reservation& reservation, const Fault& fault, Instant now) {
  SlotEntry& entry = slot_entry(reservation.index());
  DeferredActions actions;
  {
    const Held lock(mutex);
    supply.dial_failed(dial_ended(entry));
    note_dial_failure(fault, now);
    end(entry, CloseCause::error, actions);
    match_retries(actions, now);
    refuse_after_failure(entry.value.asked, fault, actions);
  }
  run_actions_and_serve(actions, now, OpenCause::all_busy);
}

// Refuses only waiters that no other connection can serve. A retry needs a new connection, and so does a waiter for
// HTTP/1.1 where there is none: these are refused by their own failed dial.
void Destination::Impl::refuse_after_failure(ProtocolMask asked, const Fault& fault, DeferredActions& actions) {
  if (!lends()) return;  // waiters wait for the end of the pause
  if (fault.side == Side::client) return refuse_for_protocol(fault, actions);
  const std::uint32_t before = queue.size();
  if (queue.retries() > supply.streams_coming()) refuse(*queue.first(), fault, actions);
  if (asked == ProtocolMask::h1_only && queue.lacks_kind(Protocol::h1, supply.held(), supply.h1_dials())) {
    refuse(*queue.first_wanting(ProtocolMask::h1_only), fault, actions);
  }
  // A connection that serves one request serves no waiter: then the dial is that of the first one alone.
  const bool others_serve = serving() > 0;
  if (others_serve && (live.max_usage() != 1 || queue.size() != before)) return;
  while (!others_serve && !queue.empty() && supply.dials() == 0 && actions.step())
    refuse(*queue.first(), fault, actions);
  // Those in progress are allowed by pool.connect_rate, and each of their connections serves more than one.
  if (actions.more || (fault.kind == FaultKind::rate_limited && live.max_usage() != 1)) return;
  if (queue.size() > supply.streams_coming()) refuse(*queue.first(), fault, actions);
}

// The origin was reached and does not support HTTP/1.1: each such dial refuses one of the waiters that need it, and
// none of the others, which a session would serve. An open connection serves one that needs none of its own.
void Destination::Impl::refuse_for_protocol(const Fault& fault, DeferredActions& actions) {
  if (queue.wanting(ProtocolMask::h1_only) <= supply.h1_dials()) return;
  Borrower& first = *queue.first_wanting(ProtocolMask::h1_only);
  const BorrowRequest& want = first.want_;
  const bool needs_own = live.max_usage() == 1 || want.new_connection_only || want.max_idle < Duration::zero();
  if (needs_own || !h1_serves()) refuse(first, fault, actions);
}

// Returns true if a waiter for HTTP/1.1 will get an open connection. Tunnels never return.
bool Destination::Impl::h1_serves() const {
  return supply.held(Protocol::h1) > tunnelling.load(std::memory_order_relaxed);
}

// Returns the number of open connections that will be released to waiters eventually.
std::uint32_t Destination::Impl::serving() const {
  const std::uint32_t others = coming() + tunnelling.load(std::memory_order_relaxed) + supply.draining();
  const std::uint32_t all = pool.in_use();
  return all > others ? all - others : 0;
}

// Returns the time of expiry, up to 10 % early, so that connections opened together do not all expire together.
Instant Destination::Impl::expiry(const SlotEntry& entry, Instant now) const {
  if (limits.expire_time <= Duration::zero()) return kNever;
  const auto moment = static_cast<std::uint64_t>(now.time_since_epoch().count());
  const auto per_mille = static_cast<Duration::rep>(splitmix64((std::uint64_t{entry.index} << 20) ^ moment) % 100);
  return now + limits.expire_time - limits.expire_time / 1000 * per_mille;
}

}  // namespace carpool::pool
