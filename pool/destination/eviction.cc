// Eviction: chooses the idle connection to close when its place is needed elsewhere. A clock hand passes over the
// entries and the best of the next few idle connections is chosen, so the cost does not depend on their number.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

namespace {
constexpr unsigned kCompared = 32;       // accepted connections per choice
constexpr unsigned kMaxExamined = 1000;  // idle connections examined per choice, accepted or not
// How long an idle session without streams keeps its place from a waiter.
constexpr Duration kStreamless = std::chrono::seconds(1);

std::uint32_t uses(const SlotEntry& entry) {
  return EntryWord(entry.word.load(std::memory_order_acquire)).uses();
}
bool longer_idle(const SlotEntry& one, const SlotEntry& other) {
  return one.value.idle_since.get() < other.value.idle_since.get();
}
}  // namespace

// Returns the best of the next idle connections that accept(entry) takes, or null. better(one, other) returns true if
// `one` is to be closed before `other`. The search clears stale bits; a session with stream limit 0 counts as idle.
template <class Accept, class Better>
SlotEntry* Destination::Impl::find_idle(DeferredActions& actions, Accept&& accept, Better&& better) {
  SlotEntry* best = nullptr;
  unsigned compared = 0, examined = 0;
  std::uint32_t last = evict_hand;
  const auto matcher = [&](const SlotEntry& entry, EntryWord word) {
    if (!word.idle()) return Match::skip;
    last = entry.place();
    if (accept(entry)) {
      if (best == nullptr || better(entry, *best)) best = &slot_entry(entry.index);
      ++compared;
    }
    return compared == kCompared || ++examined == kMaxExamined ? Match::evict : Match::skip;
  };
  const auto found = pool.acquire(SearchHint{.loop = static_cast<LoopId>(evict_hand % loops),
                                             .on_loop = false,
                                             .strategy = Strategy::thread_id,
                                             .key = evict_hand,
                                             .include_unlendable = true},
                                  matcher);
  actions.more |= found.relisted;  // pairs with enqueue(): a concurrent search missed the entry
  evict_hand = last + 1;
  return best;
}

bool Destination::Impl::evict_own(Instant now) {
  DeferredActions actions;
  {
    const Held lock(mutex);
    const bool by_use = limits.evict == Evict::least_used;
    const auto any = [](const SlotEntry&) { return true; };
    const auto better = [by_use](const SlotEntry& one, const SlotEntry& other) {
      return by_use ? uses(one) < uses(other) : longer_idle(one, other);
    };
    while (SlotEntry* entry = find_idle(actions, any, better)) {
      if (end_idle(*entry, EntryWord(entry->word.load(std::memory_order_acquire)), CloseCause::budget, actions)) break;
    }
  }
  const bool evicted = !actions.ended.empty();
  if (run_actions(actions) || actions.more) serve_own_waiters(now, OpenCause::all_busy);
  return evicted;
}

// Returns a longest-idle connection that no waiter would accept, or null. A session suits every waiter that accepts its
// protocol, unless its origin allows no stream for long: a limit of zero is meant for a short time (RFC 9113 §6.5.2).
SlotEntry* Destination::Impl::longest_idle_unwanted(Protocol kind, DeferredActions& actions, Instant now) {
  const Duration longest_accepted_idle = queue.longest_accepted_idle(kind);
  if (supply.held(kind) == 0 || (kind == Protocol::h1 && longest_accepted_idle == Duration::max())) return nullptr;
  const bool suits = kind == Protocol::h2 && longest_accepted_idle != Duration::min();
  const Duration longest = suits ? kStreamless : longest_accepted_idle;
  const auto unwanted = [&](const SlotEntry& entry) {
    const Instant since = entry.value.idle_since.get();
    return protocol_of(entry) == kind && now - since > longest && (!suits || entry.multiplexing().max_users == 0);
  };
  return find_idle(actions, unwanted, longer_idle);
}

// Returns the session with the fewest users among some that admit new ones, or null.
SlotEntry* Destination::Impl::least_used_session() {
  const std::uint32_t known = pool.blocks(), most = kMaxExamined / kBlockEntries;
  if (known == 0) return nullptr;
  SlotEntry* least = nullptr;
  const std::uint32_t first = evict_hand / kBlockEntries % known;
  pool.for_each(first, most, [&](SlotEntry& entry) {
    const EntryWord word(entry.word.load(std::memory_order_acquire));
    if (protocol_of(entry) != Protocol::h2 || word.closed() || word.reserved()) return;
    if (least == nullptr || word.users() < EntryWord(least->word.load(std::memory_order_relaxed)).users())
      least = &entry;
  });
  evict_hand = (first + most) * kBlockEntries;
  return least;
}

}  // namespace carpool::pool
