// Supply and demand. A dial is not bound to the borrower who caused it: while fewer connections are coming than
// borrowers wait, and the cap allows, one more is dialed; whoever is first in line then gets it.
#include "pool/destination_impl.h"

namespace carpool::pool {

// Capacity became free, or might have: serves the line until nothing is left to do.
void Destination::Impl::attend(Instant now, Opened why) {
  while (waiting()) {
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      plan(work, now, why);
    }
    if (!perform(work, now)) return;
    why = work.why;
  }
}

void Destination::Impl::wake(Instant now) {
  {
    const std::scoped_lock lock(mutex);
    backoff.woken();
  }
  attend(now);
}

// Under the mutex.
void Destination::Impl::plan(Errands& work, Instant now, Opened why) {
  work.why = why;
  if (stopped()) return end_all_idle(work);
  match_idle(work, now);
  dial_for_demand(work, now);
}

void Destination::Impl::dial_for_demand(Errands& work, Instant now) {
  if (line.empty()) {
    made_room = 0;
    return;
  }
  // What is being looked at may come back in a moment: nobody dials because of it.
  const std::uint32_t looked_at = line.size() > dials && !pool.full() ? inspecting() : 0;
  for (;;) {
    const std::uint32_t others = line.others() > looked_at ? line.others() - looked_at : 0;
    if (line.replays() + others <= coming()) return;
    if (backoff.holds(now) && serving() != 0) {
      if (backoff.ask_once()) work.wake_at = backoff.until();
      return;
    }
    Chair* entry = reserve();
    if (entry == nullptr) {
      if (!make_room(work, now)) return;
      continue;
    }
    const Opened cause = cause_of_dial(work);
    entry->value.owner = this;
    entry->value.opened.store(cause, std::memory_order_relaxed);
    entry->value.opened_at.set(now);
    ledger.open(cause, pool.in_use());
    ++dials;
    work.dials.push(*entry);
  }
}

// A place under both caps, or null.
Chair* Destination::Impl::reserve() {
  Chair* entry = pool.reserve();
  if (entry == nullptr || total == nullptr || total->take()) return entry;
  CARPOOL_ASSERT(pool.close(*entry));
  pool.vacate(*entry);
  ++ledger.version;  // a scan may have seen it
  return nullptr;
}

// No place is left. What rests here and nobody in line wants ends for them, the longest rested first. What somebody
// would take was published a moment ago: whoever did that serves the line with it.
bool Destination::Impl::make_room(Errands& work, Instant now) {
  while (Chair* entry = longest_rested()) {
    const Word word(entry->word.load(std::memory_order_acquire));
    if (now - entry->value.idle_since.get() <= line.most_patient()) break;
    if (!end_idle(*entry, word, Closed::surplus, work)) continue;
    if (line.replays() < coming()) ++made_room;  // it is not for a replay
    return true;
  }
  work.hungry = total != nullptr && !pool.full();
  return false;
}

Opened Destination::Impl::cause_of_dial(Errands& work) {
  if (line.replays() > dials) return Opened::replay;
  if (origin.scheme == Scheme::tcp) return Opened::tunnel;
  if (made_room != 0) {
    --made_room;
    return Opened::policy;
  }
  if (work.why != Opened::all_busy) return std::exchange(work.why, Opened::all_busy);
  if (pool.in_use() == 1 + work.ended.size()) return Opened::first;  // but for its own place the pool is empty
  return work.idle_refused ? Opened::policy : Opened::all_busy;
}

// ---- the end of a dial ----

void Destination::Impl::dialed(const Reservation& reservation, std::unique_ptr<Pooled> made, Instant now) {
  Chair& entry = chair(reservation.index());
  Pooled* pooled = made.release();  // the entry's from here; ends in House::dispose
  const LoopId here = house.here();
  const bool clean = pooled->settle();
  Errands work;
  bool rests = false;
  {
    const std::scoped_lock lock(mutex);
    --dials;
    ++ledger.created;
    backoff.succeeded();
    entry.value.pooled = pooled;
    entry.value.expires_at.set(expiry(entry, now));
    entry.value.idle_since.set(now);
    entry.value.left.store(false, std::memory_order_relaxed);
    const Duration took = now - entry.value.opened_at.get();
    dial_time = dial_time == Duration::zero() ? took : dial_time + (took - dial_time) / 8;
    Borrower* borrower = line.first();
    rests = !stopped() && borrower == nullptr && clean;
    CARPOOL_ASSERT(pool.enable(entry, here, !rests));
    if (stopped()) {
      end(entry, Closed::shutdown, work);
    } else if (borrower != nullptr) {
      // What speaks first, or said farewell already, is for the borrower to see: it answers for it once.
      if (borrower->loop_ != here) CARPOOL_ASSERT(try_hand(entry.word, borrower->loop_, false));
      grant(entry, *borrower, here, work);
    } else if (!clean) {
      end(entry, Closed::peer_closed, work);
    }
    plan(work, now, Opened::all_busy);
  }
  finish(work, now, Opened::all_busy);
  if (rests) feed_starving(now);
}

void Destination::Impl::dial_failed(const Reservation& reservation, const Fault& fault, Instant now) {
  Chair& entry = chair(reservation.index());
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    --dials;
    backoff.failed(now);
    ledger.fail(reason_of(fault));
    end(entry, Closed::error, work);
    refuse_after_failure(fault, work);
  }
  finish(work, now, Opened::all_busy);
}

// Nobody fails whom another connection can serve. A replay takes only a new one, so a failed dial is its own.
void Destination::Impl::refuse_after_failure(const Fault& fault, Errands& work) {
  if (line.replays() > dials) refuse(*line.first(), fault, work);
  if (serving() != 0) return;
  while (!line.empty() && dials == 0) refuse(*line.first(), fault, work);
  if (line.size() > dials) refuse(*line.first(), fault, work);
}

// Live connections that will come back to the line one day.
std::uint32_t Destination::Impl::serving() const {
  const std::uint32_t others = coming() + tunnelling.load(std::memory_order_relaxed);
  const std::uint32_t all = pool.in_use();
  return all > others ? all - others : 0;
}

std::uint32_t Destination::Impl::inspecting() const {
  std::uint32_t count = 0;
  pool.for_each([&](Chair& entry) { count += Word(entry.word.load(std::memory_order_seq_cst)).inspecting() ? 1 : 0; });
  return count;
}

// Up to 10 % early, so that connections of one moment do not all end in one.
Instant Destination::Impl::expiry(const Chair& entry, Instant now) const {
  if (limits.expire_time <= Duration::zero()) return kNever;
  std::uint64_t mixed = (std::uint64_t{entry.index} << 20) ^ static_cast<std::uint64_t>(now.time_since_epoch().count());
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  const auto per_mille = static_cast<Duration::rep>((mixed ^ (mixed >> 31)) % 100);
  return now + limits.expire_time - limits.expire_time / 1000 * per_mille;
}

}  // namespace carpool::pool
