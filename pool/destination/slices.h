// The templates of slices.cc: loops that call a step of their caller.
#pragma once

#include <new>
#include <utility>
#include <vector>

#include "base/lazy_order.h"
#include "pool/destination/destination_impl.h"

namespace carpool::pool {

// An idle connection and the state in which it was seen.
struct IdleConnection {
  Instant since;
  SlotEntry* entry;
  EntryWord word;
};

// Calls step(first, count, actions) under the mutex for `count` blocks at a time and performs the actions in between.
// The caller serves waiters afterwards.
template <class Step>
void Destination::Impl::in_slices(Step&& step) {
  constexpr std::uint32_t kBlocks = DeferredActions::kMaxSteps / kBlockEntries;
  const std::uint32_t known = pool.blocks();
  for (std::uint32_t first = 0; first < known; first += kBlocks) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      step(first, kBlocks, actions);
    }
    static_cast<void>(run_actions(actions));
  }
}

// Closes the longest-idle connections while surplus(), called under the mutex, returns true: O(n) for one pass over all
// and O(log n) for each that closes. If memory is exhausted, the order is arbitrary.
template <class Surplus>
void Destination::Impl::end_longest_idle(CloseCause cause, IdleScope scope, Surplus&& surplus) {
  std::vector<IdleConnection> all;
  try {
    all = all_idle(scope);
  } catch (const std::bad_alloc&) {
    return in_slices([&](std::uint32_t first, std::uint32_t count, DeferredActions& actions) {
      pool.for_each(first, count, [&](SlotEntry& entry) {
        mutex.assert_held();
        const EntryWord word(entry.word.load(std::memory_order_acquire));
        if (word.idle() && (scope == IdleScope::all || word.uses() != 0) && surplus()) {
          static_cast<void>(end_idle(entry, word, cause, actions));
        }
      });
    });
  }
  const auto longer = [](const IdleConnection& one, const IdleConnection& other) { return one.since < other.since; };
  LazyOrder order(std::move(all), longer);
  for (bool more = true; more && !order.empty();) {
    DeferredActions actions;
    {
      const Held lock(mutex);
      while (more && !order.empty() && actions.step()) {
        more = surplus();
        if (!more) continue;
        static_cast<void>(end_idle(*order.first().entry, order.first().word, cause, actions));
        order.remove_first();
      }
    }
    static_cast<void>(run_actions(actions));
  }
}

}  // namespace carpool::pool
