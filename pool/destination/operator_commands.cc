// Operator commands: set_limits, pause, drain, resume; reconnect is in reconnect.cc. They never touch borrowed
// connections; those are checked when returned, because kReview forces release() to take the mutex.
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
  if (is_replaced()) return CloseCause::config_changed;
  if (active_pause.drains) return CloseCause::drained;
  if (entry.value.replace) return CloseCause::reconnect;
  if (above_cap() != 0) return cause_of_shrinking(limits);
  return std::nullopt;
}

// Returns the number of connections above a reduced cap. Sessions that drain leave in any case.
std::uint32_t Destination::Impl::above_cap() const {
  const std::uint32_t staying = supply.alive() - supply.draining();
  return staying > pool.cap() ? staying - pool.cap() : 0;
}

// Raises kReview if a release must check forced_close_cause(), else clears it.
void Destination::Impl::review() {
  const bool needed = active_pause.drains || replacement.in_progress() || above_cap() != 0;
  const bool raised = (attention.load(std::memory_order_relaxed) & kReview) != 0;
  if (needed && !raised) attention.fetch_or(kReview, std::memory_order_seq_cst);
  if (!needed && raised) attention.fetch_and(~kReview, std::memory_order_seq_cst);
}

// ---- set_limits ----

void Destination::Impl::set_limits(const Limits& settings, Instant now) {
  {
    const Held lock(mutex);
    const FormerSize former = limits.auto_size() ? FormerSize::automatic : FormerSize::fixed;
    limits = settings;
    live.set(settings);
    if (!settings.auto_size()) pool.cap(settings.size);
    adopt_auto_size(former, now);
    set_shares();
    if (!settings.learn_idle) forget_idle_limit();
    quarantine_wake = {};
    review();
    if (settings.max_cool_down <= Duration::zero()) end_cool_down();
    mark_replaced();
  }
  shrink();
  if (settings.replaced) leave_to_successor();
  serve_waiters(now);
}

// While kReplaced is set, every borrow and release takes the mutex.
void Destination::Impl::mark_replaced() {
  if (limits.replaced) {
    attention.fetch_or(kReplaced, std::memory_order_seq_cst);
  } else {
    attention.fetch_and(~kReplaced, std::memory_order_seq_cst);
  }
}

void Destination::use_again() {
  const Held lock(impl_->mutex);
  impl_->limits.replaced = false;
  impl_->mark_replaced();
}

// The waiters ask the pool that took the origin, in their order. The caller's serve_waiters() closes what is idle; lent
// connections close on release.
void Destination::Impl::leave_to_successor() {
  refuse_all(make_fault(FaultKind::draining, Side::self, kReplacedPool));
  drain_sessions(CloseCause::config_changed);
}

// Closes idle surplus at once, the longest idle first; if that is not enough, sessions drain. Other borrowed
// connections close on release.
void Destination::Impl::shrink() {
  const auto surplus = [this] {
    mutex.assert_held();
    return above_cap() != 0;
  };
  CloseCause cause{};
  {
    const Held lock(mutex);
    if (!surplus()) return;
    cause = cause_of_shrinking(limits);
  }
  end_longest_idle(cause, IdleScope::all, surplus);
  in_slices([this, cause](std::uint32_t first, std::uint32_t count, DeferredActions& actions) {
    pool.for_each(first, count, [&](SlotEntry& entry) {
      mutex.assert_held();
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      if (protocol_of(entry) != Protocol::h2 || word.closed() || word.reserved() || above_cap() == 0) return;
      drain(entry, cause, actions);
    });
  });
}

// ---- pause, drain, resume ----

// A repeated command replaces the end; a drain remains a drain.
void Destination::Impl::pause(Instant now, Instant until, PauseKind kind) {
  {
    const Held lock(mutex);
    begin_pause({paused() ? active_pause.since : now, until, kind == PauseKind::drain || active_pause.drains});
    if (kind == PauseKind::plain) return;
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

}  // namespace carpool::pool
