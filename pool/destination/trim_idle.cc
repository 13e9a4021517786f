// Trimming: with round_robin or random, or several addresses, every connection is used now and then, so none reaches
// idle_timeout even if few would suffice. Once per idle_timeout the number needed for the load of that period is
// computed (pool/policy/sizing.h: Little's law and Erlang's C, at least the concurrent leases, and one for each
// address) and the surplus is closed.
#include <algorithm>
#include <new>

#include "pool/destination/slices.h"
#include "pool/policy/sizing.h"

namespace carpool::pool {

// Returns nullopt if trimming is not due or there is too little data. Reads many borrows, so the mutex is not held
// meanwhile.
std::optional<std::uint32_t> Destination::Impl::measured_need(Instant now) {
  const Duration window = live.idle_timeout();
  const Strategy strategy = live.strategy();
  const bool by_strategy = strategy == Strategy::random || strategy == Strategy::round_robin;
  if (window <= Duration::zero() || (!by_strategy && !endpoints.spreads())) return std::nullopt;
  {
    const Held lock(mutex);
    if (trimmed_at == Instant{}) trimmed_at = now;
    if (now - trimmed_at < window) return std::nullopt;
    trimmed_at = now;
  }
  if (pool.in_use() < 2) return std::nullopt;
  try {
    return need_of(self.history(), now, window);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // retried by a later sweep
  }
}

std::optional<std::uint32_t> Destination::Impl::need_of(std::vector<BorrowRecord> borrows, Instant now,
                                                        Duration window) const {
  const Instant begin = now - window;
  const bool covers = std::any_of(borrows.begin(), borrows.end(),
                                  [&](const BorrowRecord& borrow) { return borrow.arrived <= now - window / 2; });
  std::erase_if(borrows,
                [&](const BorrowRecord& borrow) { return borrow.arrived + borrow.waited + borrow.held < begin; });
  const std::optional<MeasuredLoad> load = covers ? measure_load(borrows) : std::nullopt;
  if (!load) return std::nullopt;
  return std::max({erlang_size(*load), load->busy_max, endpoints.count()});
}

// Spares connections that never served: they were opened for future load. Sessions close only by idle_timeout: their
// number does not follow from leases.
void Destination::Impl::trim(std::uint32_t need) {
  end_longest_idle(CloseCause::surplus, IdleScope::served, [&] {
    mutex.assert_held();
    if (stopped() || paused() || !queue.empty() || supply.held(Protocol::h2) != 0) return false;
    return supply.alive() > need + limits.min_idle;
  });
}

// Returns the number of idle connections that min_idle does not keep.
std::uint32_t Destination::Impl::above_min_idle() const {
  if (!keeps_idle()) return 0;  // idle_timeout applies to all: see reusability_for()
  std::uint32_t idle = pending.inspecting();
  pool.for_each_idle(
      [&](const SlotEntry& entry) { idle += EntryWord(entry.word.load(std::memory_order_acquire)).idle() ? 1 : 0; });
  const std::uint32_t kept = live.min_idle();
  return idle > kept ? idle - kept : 0;
}

// Closes connections that are expired or idle for too long.
void Destination::Impl::end_all_expired(Instant now) {
  std::uint32_t surplus = above_min_idle();
  in_slices([&](std::uint32_t first, std::uint32_t count, DeferredActions& actions) {
    pool.for_each(first, count, [&](SlotEntry& entry) {
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      if (!word.idle()) return;
      mutex.assert_held();
      note_survivor(entry, word.uses(), keep_alive.refutation_limit(), now);
      Reusability reusability = reusability_for(entry, word, BorrowRequest{}, now);
      if (surplus != 0 && reusability == Reusability::fit && past_idle_timeout(entry, now)) {
        reusability = Reusability::idle_too_long;
        --surplus;
      }
      if (reusability == Reusability::fit || reusability == Reusability::unwanted) return;  // one in quarantine stays
      if (reusability == Reusability::idle_too_long && leave_to_origin(entry, now)) return;
      static_cast<void>(end_idle(entry, word, cause_of(reusability), actions));
    });
  });
}

}  // namespace carpool::pool
