// An operator's words: other limits, pause and drain, reconnect. What is lent is not touched: it is judged when it
// comes back, for which kReview sends everyone under the mutex as long as anything has to be judged.
#include <algorithm>

#include "pool/destination_impl.h"

namespace carpool::pool {

// Under the mutex. Why a connection that comes back, or was just made, must end though nothing is wrong with it.
std::optional<Closed> Destination::Impl::unwelcome(const Chair& entry) const {
  if (stopped()) return Closed::shutdown;
  if (drains) return Closed::drained;
  if (entry.value.old) return Closed::reconnect;
  if (beyond_the_cap() != 0) return Closed::config_changed;
  return std::nullopt;
}

// Connections that a smaller cap left over.
std::uint32_t Destination::Impl::beyond_the_cap() const {
  return alive > pool.cap() ? alive - pool.cap() : 0;
}

// Under the mutex: must who gives back be judged?
void Destination::Impl::review() {
  const bool needed = drains || old_ones != 0 || to_redial != 0 || beyond_the_cap() != 0;
  const bool raised = (attention.load(std::memory_order_relaxed) & kReview) != 0;
  if (needed && !raised) attention.fetch_or(kReview, std::memory_order_seq_cst);
  if (!needed && raised) attention.fetch_and(~kReview, std::memory_order_seq_cst);
}

// ---- other limits ----

void Destination::Impl::set_limits(const Limits& settings, Instant now) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    limits = settings;
    live.set(settings);
    pool.cap(settings.size);
    set_shares();
    shrink(work);
    review();
  }
  static_cast<void>(perform(work, now));
  attend(now);
}

// Under the mutex. Idle surplus ends at once, the longest rested first; when that is not enough, the least used
// sessions take nobody new. What else is lent ends when it comes back.
void Destination::Impl::shrink(Errands& work) {
  while (beyond_the_cap() != 0) {
    Chair* entry = longest_rested();
    if (entry == nullptr) break;
    static_cast<void>(
        end_idle(*entry, Word(entry->word.load(std::memory_order_acquire)), Closed::config_changed, work));
  }
  const std::uint32_t leaving = draining;
  if (beyond_the_cap() > leaving) drain_sessions(Closed::config_changed, beyond_the_cap() - leaving, work);
}

void Destination::Impl::drain_sessions(Closed cause, std::uint32_t most, Errands& work) {
  pool.for_each([&](Chair& entry) {
    const Word word(entry.word.load(std::memory_order_acquire));
    if (most == 0 || kind_of(entry) != Kind::h2 || word.closed() || word.reserved()) return;
    drain(entry, cause, work);
    --most;
  });
}

// ---- pause, drain, resume ----

void Destination::Impl::pause(Instant now, bool and_drain) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    attention.fetch_or(kPaused, std::memory_order_seq_cst);  // from now on every borrow comes under the mutex
    if (and_drain) {
      drains = true;
      drain_sessions(Closed::drained, UINT32_MAX, work);
      end_all_idle(Closed::drained, work);
      review();
    }
  }
  static_cast<void>(perform(work, now));
}

void Destination::Impl::resume(Instant now) {
  {
    const std::scoped_lock lock(mutex);
    drains = false;
    review();
    attention.fetch_and(~kPaused, std::memory_order_seq_cst);
  }
  attend(now);
}

// ---- reconnect ----

void Destination::Impl::reconnect(Instant now) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    if (stopped()) return;
    to_redial = broken_ahead = 0;
    drain_sessions(Closed::reconnect, UINT32_MAX, work);
    pool.for_each([&](Chair& entry) {
      const Word word(entry.word.load(std::memory_order_acquire));
      const bool tunnel = entry.value.tunnel.load(std::memory_order_relaxed);
      if (word.vacant() || word.reserved() || word.closed() || tunnel || entry.value.pooled == nullptr) return;
      if (!std::exchange(entry.value.old, true)) ++old_ones;
      if (word.idle()) ++to_redial;
    });
    review();
    if (!paused()) renew(work, now);
  }
  static_cast<void>(perform(work, now));
  attend(now);
}

// Under the mutex: successors of those that rest. At the cap one ends first, so that its place can be dialed.
void Destination::Impl::renew(Errands& work, Instant now) {
  while (to_redial != 0 && !backoff.holds(now)) {
    Chair* old = idle_old_one();
    if (old == nullptr) to_redial = std::min(to_redial, broken_ahead);  // the others were lent meanwhile
    if (to_redial == 0) return review();
    if (Chair* entry = reserve(work)) {
      --to_redial;
      book_dial(*entry, Kinds::any, Opened::reconnect, work, now);
      continue;
    }
    // One after the other.
    if (old == nullptr || ending.load(std::memory_order_seq_cst) != 0 || redialing != 0) return;
    const Word word(old->word.load(std::memory_order_acquire));
    if (end_idle(*old, word, Closed::reconnect, work)) ++broken_ahead;
  }
}

// A successor is there: one that it replaces ends, if it did not before.
void Destination::Impl::replaced(const Chair& entry, Errands& work) {
  if (entry.value.opened.load(std::memory_order_relaxed) != Opened::reconnect) return;
  if (broken_ahead != 0) {
    --broken_ahead;
    return;
  }
  while (Chair* old = idle_old_one()) {
    if (end_idle(*old, Word(old->word.load(std::memory_order_acquire)), Closed::reconnect, work)) return;
  }
}

Chair* Destination::Impl::idle_old_one() const {
  Chair* found = nullptr;
  pool.for_each_idle([&](Chair& entry) {
    if (found == nullptr && entry.value.old && Word(entry.word.load(std::memory_order_acquire)).idle()) found = &entry;
  });
  return found;
}

}  // namespace carpool::pool
