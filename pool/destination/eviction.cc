// Which idle connection ends when its place is needed elsewhere. A clock hand goes over the places: of the next few
// idle connections the best one is chosen, so that a choice costs the same however many there are.
#include <algorithm>

#include "pool/destination/destination_impl.h"

namespace carpool::pool {

namespace {
constexpr unsigned kCompared = 32;    // candidates of one choice
constexpr unsigned kLookedAt = 1000;  // idle connections that one choice looks at, candidates or not
}  // namespace

// Under the mutex. better(entry, word, than) says whether an idle connection is a better choice than `than` (null: than
// none). What the search finds lent leaves the maps on the way; a session whose stream limit is 0 is idle as others
// are.
template <class Better>
Chair* Destination::Impl::choose_idle(Errands& work, Better&& better) {
  Chair* best = nullptr;
  unsigned compared = 0, looked_at = 0;
  std::uint32_t last = evict_hand;
  const auto judge = [&](const Chair& entry, Word word) {
    if (!word.idle()) return Verdict::skip;
    last = entry.place();
    const bool candidate = better(entry, word, nullptr);
    if (candidate && better(entry, word, best)) best = &chair(entry.index);
    compared += candidate ? 1 : 0;
    return compared == kCompared || ++looked_at == kLookedAt ? Verdict::doomed : Verdict::skip;
  };
  const auto found = pool.acquire(
      Where{static_cast<LoopId>(evict_hand % loops), false, Strategy::thread_id, evict_hand, /*to_end=*/true}, judge);
  work.more |= found.relisted;  // the pair of stand_in_line(): who looked meanwhile did not see it
  evict_hand = last + 1;
  return best;
}

bool Destination::Impl::evict_own(Instant now) {
  Errands work;
  {
    const std::scoped_lock lock(mutex);
    const bool by_use = limits.evict == Evict::least_used;
    const auto better = [&](const Chair& entry, Word word, const Chair* than) {
      if (than == nullptr) return true;
      if (by_use) return word.uses() < Word(than->word.load(std::memory_order_acquire)).uses();
      return entry.value.idle_since.get() < than->value.idle_since.get();
    };
    while (Chair* entry = choose_idle(work, better)) {
      if (end_idle(*entry, Word(entry->word.load(std::memory_order_acquire)), Closed::budget, work)) break;
    }
  }
  const bool evicted = !work.ended.empty();
  if (perform(work) || work.more) attend_own(now, Opened::all_busy);
  return evicted;
}

// Under the mutex. Of what is idle and nobody in line would take, what rested longest.
Chair* Destination::Impl::longest_unwanted(Kind kind, Errands& work, Instant now) {
  const Duration most_patient = line.most_patient(kind);
  if (held[static_cast<std::size_t>(kind)] == 0 || most_patient == Duration::max()) return nullptr;
  return choose_idle(work, [&](const Chair& entry, Word, const Chair* than) {
    const Instant since = entry.value.idle_since.get();
    if (than != nullptr) return since < than->value.idle_since.get();
    return kind_of(entry) == kind && now - since > most_patient;
  });
}

// Under the mutex. Of some sessions that take new users, the one with the fewest.
Chair* Destination::Impl::least_used_session() {
  const std::uint32_t known = pool.blocks(), most = kLookedAt / kBlockEntries;
  if (known == 0) return nullptr;
  Chair* least = nullptr;
  const std::uint32_t first = evict_hand / kBlockEntries % known;
  pool.for_each(first, most, [&](Chair& entry) {
    const Word word(entry.word.load(std::memory_order_acquire));
    if (kind_of(entry) != Kind::h2 || word.closed() || word.reserved()) return;
    if (least == nullptr || word.users() < Word(least->word.load(std::memory_order_relaxed)).users()) least = &entry;
  });
  evict_hand = (first + most) * kBlockEntries;
  return least;
}

}  // namespace carpool::pool
