// Supply and demand. A dial is not bound to the borrower who caused it: while fewer connections are coming than
// borrowers wait, and the cap allows, one more is dialed; whoever is first in line then gets it.
#include <algorithm>
#include <new>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// Capacity became free, or might have: serves the line, and then other destinations with what is left.
void Destination::Impl::attend(Instant now, Opened why) {
  attend_own(now, why);
  serve_starved(now);
}

// Serves the line until nothing is left to do.
void Destination::Impl::attend_own(Instant now, Opened why) {
  while (waiting()) {
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      plan(work, now, why);
    }
    if (!perform(work) && !work.more) return;
    why = work.why;
  }
}

void Destination::Impl::wake(Instant now) {
  {
    const std::scoped_lock lock(mutex);
    backoff.woken();
    probe_wake = {};
    quarantine_wake = {};  // this was it: who is in quarantine now, or was being looked at, asks again
  }
  attend(now);
}

// Under the mutex.
void Destination::Impl::plan(Errands& work, Instant now, Opened why) {
  work.why = why;
  planned_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (stopped()) return end_some_idle(Closed::shutdown, work);
  if (paused()) return;
  renew(work, now);
  match_idle(work, now);
  if (live.quarantine() > Duration::zero() && !line.empty()) ask_for_quarantined(work, now);
  dial_for_demand(work, now);
  if (work.shared) dial_ahead(Opened::streams_exhausted, work, now);
}

void Destination::Impl::dial_for_demand(Errands& work, Instant now) {
  if (line.empty()) {
    made_room = 0;
    return;
  }
  // What is being looked at may come back in a moment: nobody dials because of it.
  const std::uint32_t looked_at = line.size() > dials && !pool.full() ? inspecting() : 0;
  while (const std::optional<Kinds> kind = lacking(looked_at)) {
    // Something else may serve, or ends soon: a failing origin is not stormed.
    if (backoff.holds(now) && (serving() != 0 || dials != 0)) {
      if (backoff.ask_once()) work.wake_at = std::min(work.wake_at, backoff.until());
      return;
    }
    if (!work.step()) return;
    if (dial_room(now) == 0) return hold_back(work, now);
    Chair* entry = reserve(work);
    if (entry == nullptr) {
      if (!make_room(*kind, work, now)) return;
      continue;
    }
    book_dial(*entry, *kind, cause_of_dial(*kind, work), work, now);
  }
}

// Under the mutex: the circuit lets no dial begin. Who waits is served by what is on its way or open; where there is
// neither, the last dial speaks for those that would fail as it did.
void Destination::Impl::hold_back(Errands& work, Instant now) {
  if (circuit.last_failed() && dials == 0 && serving() == 0) {
    for (; !line.empty() && work.step(); ++undialed) refuse(*line.first(), last_failure, work);
    return;
  }
  const Instant opens = circuit.last_failed() ? circuit.opens_at(dials) : kNever;
  if (opens == kNever || (probe_wake > now && probe_wake <= opens)) return;
  probe_wake = opens;
  work.wake_at = std::min(work.wake_at, opens);
}

void Destination::Impl::note_dial_failure(const Fault& fault, Instant now) {
  backoff.failed(now);
  circuit.failed(now);
  probing.store(true, std::memory_order_relaxed);
  ledger.fail(reason_of(fault));
  last_failure = copy_of(fault);
  try {
    last_failure.detail += " (told by the last dial; the next one begins in a moment)";
  } catch (const std::bad_alloc&) {  // the kind says enough
  }
}

// What has to be dialed next for the line to be served, if anything. Who insists on h1 is served by a dial of its own;
// the others share what a session will give.
std::optional<Kinds> Destination::Impl::lacking(std::uint32_t looked_at) {
  // Places that will be free in a moment: whoever ends one plans again.
  // Nor does a connection help who waits for a share.
  const std::uint32_t spoken_for =
      std::min(looked_at, line.others()) + ending.load(std::memory_order_seq_cst) + shares.held_back(line.by_class());
  const std::uint32_t h1 = line.wanting(Kinds::h1_only);
  const std::uint32_t wide = line.size() - h1;
  const std::uint32_t per_dial = streams_a_dial();
  const std::uint32_t covered = wide_dials() * per_dial;
  const std::uint32_t wide_lack = wide > covered ? wide - covered : 0;
  const std::uint32_t h1_lack = h1 > h1_dials ? h1 - h1_dials : 0;
  if (wide_lack + h1_lack <= spoken_for) return std::nullopt;
  // Not known yet what a dial brings: two are enough to find out.
  const bool enough = expected == 0 && wide_dials() >= 2;
  // In the order of the line: at the cap what is dialed first decides who is served.
  if (h1_lack != 0 && (wide_lack == 0 || enough || line.first()->want_.kind == Kinds::h1_only)) return Kinds::h1_only;
  if (wide_lack == 0 || enough) return std::nullopt;
  return line.wanting(Kinds::any) != 0 ? Kinds::any : Kinds::h2_only;
}

void Destination::Impl::book_dial(Chair& entry, Kinds kind, Opened cause, Errands& work, Instant now) {
  Seat& seat = entry.value;
  if (seat.owner == nullptr) {  // once: a letter of an earlier dial may be on its way, and names both
    seat.owner = this;
    seat.recall.entry = &entry;
  }
  seat.asked = kind;
  seat.opened.store(cause, std::memory_order_relaxed);
  seat.opened_at.set(now);
  ledger.open(cause, pool.in_use());
  circuit.began(now);
  ++dials;
  ++alive;
  seat.dialed_on = house.here();
  seat.recall.said = false;
  if (cause == Opened::reconnect) ++redialing;
  if (kind != Kinds::h1_only && for_the_line(cause)) ++line_dials;
  if (for_the_line(cause)) recallable(entry).push_back(seat.recall);
  if (kind == Kinds::h1_only) {
    ++h1_dials;
  } else if (expected != 1) {
    count_local(entry, house.here());
  }
  work.dials.push(entry);
}

// A place under both caps, or null.
Chair* Destination::Impl::reserve(Errands& work) {
  Chair* entry = nullptr;
  try {
    entry = pool.reserve();
  } catch (const std::bad_alloc&) {
    work.no_memory = true;
  }
  if (entry == nullptr || budget == nullptr || budget->take(*this)) return entry;
  CARPOOL_ASSERT(pool.close(*entry));
  pool.vacate(*entry);
  ++ledger.version;  // a scan may have seen it
  return nullptr;
}

// No place is left. What rests here and nobody in line wants ends for them, the longest rested first. What somebody
// would take was published a moment ago: whoever did that serves the line with it.
bool Destination::Impl::make_room(Kinds kind, Errands& work, Instant now) {
  for (const Kind held_kind : {Kind::h1, Kind::h2}) {
    while (Chair* entry = longest_unwanted(held_kind, work, now)) {
      const Word word(entry->word.load(std::memory_order_acquire));
      if (!end_idle(*entry, word, Closed::surplus, work)) continue;
      if (line.replays() < supply()) ++made_room;  // it is not for a replay
      return true;
    }
  }
  if (recall_for_room(work, now)) return false;
  work.hungry = budget != nullptr && !pool.full() && !work.no_memory;
  if (!work.hungry && kind == Kinds::h1_only) drain_for_h1(work);
  return false;
}

Opened Destination::Impl::cause_of_dial(Kinds kind, Errands& work) {
  if (line.replays() > dials) return Opened::replay;
  if (origin.scheme == Scheme::tcp) return Opened::tunnel;
  if (made_room != 0) {
    --made_room;
    return Opened::policy;
  }
  if (work.why != Opened::all_busy) return std::exchange(work.why, Opened::all_busy);
  if (pool.in_use() == 1 + work.ended.size()) return Opened::first;  // but for its own place the pool is empty
  if (kind != Kinds::h1_only && held[1] != 0) return Opened::streams_exhausted;
  return work.idle_refused ? Opened::policy : Opened::all_busy;
}

// ---- the end of a dial ----

void Destination::Impl::dialed(const Reservation& reservation, std::unique_ptr<Pooled> made, Instant now) {
  Chair& entry = chair(reservation.index());
  const Kind kind = made->kind();
  Sharing sharing{kind == Kind::h2 ? made->streams() : 1, kind == Kind::h2};
  Pooled* pooled = made.release();  // the entry's from here; ends in House::dispose
  const bool clean = pooled->settle();
  Errands work;
  bool rests = false;
  {
    const std::scoped_lock lock(mutex);
    if (sharing.stays) sharing.most = first_streams.begin(entry.value.first_streams, sharing.most);
    dial_ended(entry);
    ++ledger.created;
    backoff.succeeded();
    circuit.succeeded(now);
    probing.store(false, std::memory_order_relaxed);
    entry.value.pooled = pooled;
    entry.value.expires_at.set(expiry(entry, now));
    entry.value.idle_since.set(now);
    entry.value.left.store(false, std::memory_order_relaxed);
    const Duration took = now - entry.value.opened_at.get();
    dial_time = dial_time == Duration::zero() ? took : dial_time + (took - dial_time) / 8;
    entry.value.born = now;
    ++held[static_cast<std::size_t>(kind)];
    learn_streams(entry.value.asked, kind, sharing.most, work);
    rests = kind == Kind::h2 ? enable_session(entry, sharing, clean, work, now) : enable_h1(entry, clean, work);
    replaced(entry, work);
    plan(work, now, Opened::all_busy);
    if (kind == Kind::h2) recall_beside(entry, work, now);
  }
  if (rests) offer_slots();
  finish(work, now, Opened::all_busy);
}

// True: it rests. Not clean: what speaks first, or said farewell already, is for a borrower to see: it answers for it
// once.
bool Destination::Impl::enable_h1(Chair& entry, bool clean, Errands& work) {
  const LoopId here = house.here();
  const std::optional<Closed> ends = unwelcome(entry);
  Borrower* borrower = ends || paused() ? nullptr : taker(Kind::h1);
  const bool rests = !ends && borrower == nullptr && clean;
  CARPOOL_ASSERT(pool.enable(entry, here, !rests, Sharing{1, false}));
  if (ends) {
    end(entry, *ends, work);
  } else if (borrower != nullptr) {
    if (borrower->loop_ != here) CARPOOL_ASSERT(try_hand(entry.word, borrower->loop_, false));
    grant(entry, *borrower, here, work);
  } else if (!clean) {
    end(entry, Closed::peer_closed, work);
  }
  return rests;
}

void Destination::Impl::dial_ended(Chair& entry) {
  --dials;
  static_cast<ListHook<DialTag>&>(entry.value.recall).unlink();
  const Opened cause = entry.value.opened.load(std::memory_order_relaxed);
  if (cause == Opened::reconnect) --redialing;
  if (entry.value.asked == Kinds::h1_only) --h1_dials;
  if (entry.value.asked != Kinds::h1_only && for_the_line(cause)) --line_dials;
  uncount_local(entry);
}

void Destination::Impl::dial_failed(const Reservation& reservation, const Fault& fault, Instant now) {
  Chair& entry = chair(reservation.index());
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    dial_ended(entry);
    note_dial_failure(fault, now);
    end(entry, Closed::error, work);
    refuse_after_failure(entry.value.asked, fault, work);
  }
  finish(work, now, Opened::all_busy);
}

// Nobody fails whom another connection can serve. A replay takes only a new one, so a failed dial is its own; so is the
// one of who insists on h1 where there is none.
void Destination::Impl::refuse_after_failure(Kinds asked, const Fault& fault, Errands& work) {
  if (paused()) return;  // they wait for the end of the pause
  if (line.replays() > dial_supply()) refuse(*line.first(), fault, work);
  if (asked == Kinds::h1_only && line.lacks_kind(Kind::h1, held, h1_dials)) {
    refuse(*line.first_wanting(Kinds::h1_only), fault, work);
  }
  if (serving() != 0) return;
  while (!line.empty() && dials == 0 && work.step()) refuse(*line.first(), fault, work);
  if (work.more) return;
  if (line.size() > dial_supply()) refuse(*line.first(), fault, work);
}

// Live connections that will come back to the line one day.
std::uint32_t Destination::Impl::serving() const {
  const std::uint32_t others = coming() + tunnelling.load(std::memory_order_relaxed) + draining;
  const std::uint32_t all = pool.in_use();
  return all > others ? all - others : 0;
}

// Up to 10 % early, so that connections of one moment do not all end in one.
Instant Destination::Impl::expiry(const Chair& entry, Instant now) const {
  if (limits.expire_time <= Duration::zero()) return kNever;
  const auto moment = static_cast<std::uint64_t>(now.time_since_epoch().count());
  const auto per_mille = static_cast<Duration::rep>(scatter((std::uint64_t{entry.index} << 20) ^ moment) % 100);
  return now + limits.expire_time - limits.expire_time / 1000 * per_mille;
}

}  // namespace carpool::pool
