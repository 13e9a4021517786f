// Operator commands: set_limits, pause, drain, resume, reconnect. They never touch borrowed connections; those are
// checked when returned, because kReview forces release() to take the mutex.
#include <algorithm>
#include <utility>

#include "pool/destination/slices.h"

namespace carpool::pool {

namespace {
CloseCause cause_of_shrinking(const Limits& limits) {
  return limits.auto_size() ? CloseCause::surplus : CloseCause::config_changed;
}
}  // namespace

// Returns the cause for closing a connection that was released or opened although it is healthy.
std::optional<CloseCause> Destination::Impl::forced_close_cause(const SlotEntry& entry) const {
  if (stopped()) return CloseCause::shutdown;
  if (active_pause.drains) return CloseCause::drained;
  if (entry.value.replace) return CloseCause::reconnect;
  if (beyond_the_cap() != 0) return cause_of_shrinking(limits);
  return std::nullopt;
}

// The number of connections above a reduced cap.
std::uint32_t Destination::Impl::beyond_the_cap() const {
  return supply.alive() > pool.cap() ? supply.alive() - pool.cap() : 0;
}

// Raises kReview if a release must check forced_close_cause(), else clears it.
void Destination::Impl::review() {
  const bool needed = active_pause.drains || to_replace != 0 || to_redial != 0 || beyond_the_cap() != 0;
  const bool raised = (attention.load(std::memory_order_relaxed) & kReview) != 0;
  if (needed && !raised) attention.fetch_or(kReview, std::memory_order_seq_cst);
  if (!needed && raised) attention.fetch_and(~kReview, std::memory_order_seq_cst);
}

// ---- set_limits ----

void Destination::Impl::set_limits(const Limits& settings, Instant now) {
  {
    const Held lock(mutex);
    limits = settings;
    live.set(settings);
    if (!settings.auto_size()) pool.cap(settings.size);
    adopt_auto_size(now);
    set_shares();
    ready_wanted.store(settings.min_idle, std::memory_order_relaxed);
    quarantine_wake = {};
    review();
    if (settings.max_cool_down <= Duration::zero()) end_cool_down();
  }
  shrink();
  serve_waiters(now);
}

// Closes idle surplus at once, the longest idle first; if that is not enough, sessions drain. Other borrowed
// connections close on release.
void Destination::Impl::shrink() {
  const auto surplus = [this] {
    mutex.assert_held();
    return beyond_the_cap() != 0;
  };
  CloseCause cause{};
  {
    const Held lock(mutex);
    if (!surplus()) return;
    cause = cause_of_shrinking(limits);
  }
  end_longest_idle(cause, false, surplus);
  in_slices([this, cause](std::uint32_t first, std::uint32_t count, DeferredActions& actions) {
    pool.for_each(first, count, [&](SlotEntry& entry) {
      mutex.assert_held();
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      if (protocol_of(entry) != Protocol::h2 || word.closed() || word.reserved() ||
          beyond_the_cap() <= supply.draining())
        return;
      drain(entry, cause, actions);
    });
  });
}

// ---- pause, drain, resume ----

// A repeated order replaces the end; a drain stays one.
void Destination::Impl::pause(Instant now, Instant until, bool and_drain) {
  {
    const Held lock(mutex);
    begin_pause({paused() ? active_pause.since : now, until, and_drain || active_pause.drains});
    if (!and_drain) return;
  }
  drain_sessions(CloseCause::drained);
  end_all_idle(CloseCause::drained);
  serve_starved(now);
}

void Destination::Impl::begin_pause(const Pause& pause) {
  attention.fetch_or(kPaused, std::memory_order_seq_cst);  // from now on every borrow takes the mutex
  active_pause = pause;
  review();
}

void Destination::Impl::end_pause() {
  active_pause = {};
  review();
  attention.fetch_and(~kPaused, std::memory_order_seq_cst);
}

void Destination::Impl::resume(Instant now) {
  {
    const Held lock(mutex);
    end_pause();
    end_cool_down();
  }
  serve_waiters(now);
}

// Called by sweep(), which serves the waiters afterwards.
void Destination::Impl::end_pause_in_time(Instant now) {
  if (!paused()) return;
  {
    const Held lock(mutex);
    if (!paused() || now < active_pause.until) return;
    end_pause();
  }
  environment.pause_ended(self);
}

// ---- reconnect ----

void Destination::Impl::reconnect(Instant now) {
  {
    const Held lock(mutex);
    if (stopped()) return;
    to_redial = broken_ahead = to_end = old_looked = 0;
  }
  drain_sessions(CloseCause::reconnect);
  in_slices([this](std::uint32_t first, std::uint32_t count, DeferredActions&) {
    mutex.assert_held();
    pool.for_each(first, count, [this](SlotEntry& entry) {
      mutex.assert_held();
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      const bool tunnel = entry.value.tunnel.load(std::memory_order_relaxed);
      if (word.vacant() || word.reserved() || word.closed() || tunnel || entry.value.pooled == nullptr) return;
      if (!std::exchange(entry.value.replace, true)) ++to_replace;
      if (word.idle()) ++to_redial;
    });
    review();
  });
  serve_waiters(now);
}

// Dials successors of idle connections. At the cap one closes first to make a place.
void Destination::Impl::redial_old(DeferredActions& actions, Instant now) {
  if (to_end != 0) end_replaced(actions);
  while (to_redial != 0 && !backoff.blocks(now) && dial_room(now) != 0) {
    if (!actions.step()) return;
    SlotEntry* old = idle_to_replace(actions);
    if (old == nullptr && actions.more) return;
    if (old == nullptr) to_redial = std::min(to_redial, broken_ahead);  // the others were lent meanwhile
    if (to_redial == 0) return review();
    if (SlotEntry* entry = reserve(actions)) {
      if (--to_redial == 0) review();
      record_dial(*entry, ProtocolMask::any, OpenCause::reconnect, actions, now);
      continue;
    }
    // One after the other.
    if (old == nullptr || pending.disposing() != 0 || supply.redials() != 0) return;
    const EntryWord word(old->word.load(std::memory_order_acquire));
    if (end_idle(*old, word, CloseCause::reconnect, actions)) ++broken_ahead;
  }
}

// A successor is open: closes one predecessor unless it was closed before.
void Destination::Impl::replaced(const SlotEntry& entry, DeferredActions& actions) {
  if (entry.value.opened.load(std::memory_order_relaxed) != OpenCause::reconnect) return;
  if (broken_ahead != 0) {
    --broken_ahead;
    return;
  }
  ++to_end;
  end_replaced(actions);
}

void Destination::Impl::end_replaced(DeferredActions& actions) {
  while (to_end != 0) {
    SlotEntry* old = idle_to_replace(actions);
    if (old == nullptr && actions.more) return;
    if (old == nullptr) {
      to_end = 0;  // the others were lent meanwhile: they close on release
    } else if (end_idle(*old, EntryWord(old->word.load(std::memory_order_acquire)), CloseCause::reconnect, actions)) {
      --to_end;
    }
  }
}

// Returns the next idle connection to be replaced, continuing where the last search ended. Null: there is none or, with
// actions.more, none in this slice.
SlotEntry* Destination::Impl::idle_to_replace(DeferredActions& actions) {
  const std::uint32_t known = pool.blocks();
  for (; old_looked < known; ++old_looked, ++old_hand) {
    SlotEntry* found = nullptr;
    const std::uint32_t first = old_hand % known * kBlockEntries;
    for (std::uint32_t n = 0; n < kBlockEntries && found == nullptr; ++n) {
      SlotEntry& entry = pool.entry(first + n);
      if (entry.value.replace && EntryWord(entry.word.load(std::memory_order_acquire)).idle()) found = &entry;
    }
    if (found != nullptr) {
      old_looked = 0;
      return found;
    }
    for (unsigned n = 0; n < kBlockEntries; ++n) {
      if (!actions.step()) return nullptr;
    }
  }
  old_looked = 0;
  return nullptr;
}

}  // namespace carpool::pool
