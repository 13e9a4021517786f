// Operations on every connection or waiter: one pass, in slices of bounded length under the mutex, so that no loop
// waits long for it.
#include "pool/destination/slices.h"

namespace carpool::pool {

// Examines the listed entries, as a search does. Throws std::bad_alloc.
std::vector<IdleConnection> Destination::Impl::all_idle(IdleScope scope) const {
  std::vector<IdleConnection> all;
  all.reserve(pool.in_use());
  pool.for_each_idle([&](SlotEntry& entry) {
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (!word.idle() || (scope == IdleScope::served && word.uses() == 0)) return;
    all.push_back({entry.value.idle_since.get(), &entry, word});
  });
  return all;
}

// Closes idle connections; actions.more: others may be left. One pass suffices: the thread that makes a connection idle
// behind the cursor sees the flag, before that in release() or after it in after_idle(), and closes it.
void Destination::Impl::end_some_idle(CloseCause cause, DeferredActions& actions) {
  static_cast<void>(pool.find_idle(0, [&](SlotEntry& entry) {
    mutex.assert_held();
    const EntryWord seen(entry.word.load(std::memory_order_acquire));
    if (!seen.idle()) return false;
    if (!actions.step()) return true;
    static_cast<void>(end_idle(entry, seen, cause, actions));
    return false;
  }));
}

void Destination::Impl::end_all_idle(CloseCause cause) {
  for (bool more = true; more;) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      end_some_idle(cause, actions);
    }
    more = actions.more;
    static_cast<void>(run_actions(actions));
  }
}

void Destination::Impl::refuse_all(const Fault& fault) {
  for (bool more = true; more;) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      while (waiters() != 0 && actions.step())
        refuse(*(queue.empty() ? tunnels.waiters : queue).first(), fault, actions);
    }
    more = actions.more;
    static_cast<void>(run_actions(actions));
  }
}

// Drains the sessions: each admits no new borrower and closes with its last one.
void Destination::Impl::drain_sessions(CloseCause cause) {
  in_slices([&](std::uint32_t first, std::uint32_t count, DeferredActions& actions) {
    mutex.assert_held();
    if (supply.held(Protocol::h2) == 0) return;
    pool.for_each(first, count, [&](SlotEntry& entry) {
      mutex.assert_held();
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      if (protocol_of(entry) != Protocol::h2 || word.closed() || word.reserved()) return;
      drain(entry, cause, actions);
    });
  });
}

}  // namespace carpool::pool
