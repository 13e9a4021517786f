// Finder: searches a pool for an available entry and takes it. A search reads the bitmaps, calls the matcher for each
// candidate and takes it by one compare-and-swap on its word. The word alone decides; the bits are hints.
//
// acquire() does not touch the bitmaps: a hit costs one CAS, and threads contend only on entries. A set bit may
// therefore point to a borrowed entry; a search that follows it clears it. A release sets the bit again if it is
// missing. An available entry is unlisted only between the release of its word and that set, and between a clear and
// its recheck (Found::relisted): the releasing thread, or the caller of the search, serves the waiters afterwards.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "pool/atomic.h"
#include "pool/core/audit_report.h"
#include "pool/core/blocks.h"
#include "pool/core/entry.h"
#include "pool/core/filled_blocks.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

// The matcher's decision on a candidate. `evict`: the entry must be closed; the search stops so that the caller can do
// it.
enum class Match : std::uint8_t { take, skip, evict };

template <class T>
class Finder {
 public:
  // The result of a search. taken: `after` is the state won. Otherwise `entry`, if set, must be closed; `before` is its
  // state.
  struct Found {
    Entry<T>* entry = nullptr;
    bool taken = false;
    // An entry was unlisted for a moment during its release, so a concurrent search may have missed it: the caller must
    // serve waiters.
    bool relisted = false;
    EntryWord before, after;
  };

  Finder(const Blocks<T>& blocks, unsigned loops, std::uint64_t seed)
      : blocks_(blocks), loops_(loops), filled_(blocks, loops), search_states_(std::make_unique<SearchState[]>(loops)) {
    for (unsigned loop = 0; loop < loops; ++loop) {
      search_states_[loop].number.store(static_cast<std::uint32_t>(splitmix64(seed + loop)), std::memory_order_relaxed);
      search_states_[loop].random_state.store(static_cast<std::uint32_t>(splitmix64(~seed + loop)),
                                              std::memory_order_relaxed);
    }
  }

  // Returns true if the search ended with `found`. Calls matcher(entry, word) before each attempt; `places` bounds the
  // key.
  template <class Matcher>
  bool find(const SearchHint& where, std::uint32_t places, Matcher& matcher, Found& found) {
    switch (where.strategy) {
      case Strategy::first:
        return try_last_released(where, matcher, found) || own_loop_first(where, matcher, found);
      case Strategy::thread_id:
        return try_last_released(where, matcher, found) ||
               own_loop_first_from(where, places == 0 ? 0 : where.key % places, matcher, found);
      case Strategy::random:
        return at_random(where, matcher, found);
      case Strategy::round_robin:
        return by_round_robin(where, matcher, found);
    }
    return false;
  }

  // Returns an entry that the maps list and fits(entry, word) accepts, searched from a random position on and around,
  // or null. Examines at most kMaxSamples entries and empty blocks, and takes no entry.
  template <class Fits>
  Entry<T>* draw(LoopId loop, Fits&& fits) {
    const std::uint32_t places =
        std::min(highest_listed_.load(std::memory_order_relaxed), blocks_.count() * kBlockEntries);
    if (places == 0) return nullptr;
    const std::uint32_t place = scaled_to(next_random(loop), places), first = place / kBlockEntries;
    const std::uint32_t blocks = (places + kBlockEntries - 1) / kBlockEntries;
    unsigned samples = 0;
    Entry<T>* drawn = nullptr;
    // Returns true if the search ends.
    const auto among = [&](Block<T>& block, std::uint64_t bits) {
      for (; bits != 0; bits &= bits - 1) {
        if (++samples > kMaxSamples) return true;
        Entry<T>& entry = block.entry(SearchOrder::pick(bits));
        const EntryWord word(entry.word.load(std::memory_order_acquire));
        if (!word.lendable(entry.multiplexing().max_users) || !fits(entry, word)) continue;
        drawn = &entry;
        return true;
      }
      return false;
    };
    const auto in_block = [&](std::uint32_t number) {  // an empty block counts, too: its mark may be an old one
      Block<T>& block = blocks_.at(number);
      return ++samples > kMaxSamples || among(block, block.idle_anywhere());
    };
    Block<T>& begin = blocks_.at(first);
    const unsigned within = place % kBlockEntries;
    static_cast<void>(among(begin, from_place(begin.idle_anywhere(), within)) ||
                      filled_.visit(0, loops_, first + 1, blocks, in_block) ||
                      filled_.visit(0, loops_, 0, first, in_block) ||
                      among(begin, before_place(begin.idle_anywhere(), within)));
    return drawn;
  }
  // Tries exactly this entry, as find() does.
  template <class Matcher>
  bool acquire_entry(Entry<T>& entry, const SearchHint& where, Matcher& matcher, Found& found) {
    return attempt(entry, where, matcher, found);
  }
  // Returns the next random number of a loop.
  std::uint32_t next_random(LoopId loop) {
    std::atomic<std::uint32_t>& random_state = search_states_[loop].random_state;
    const std::uint32_t next = next_in_sequence(random_state.load(std::memory_order_relaxed));
    random_state.store(next, std::memory_order_relaxed);
    return next;
  }

  // Lists an idle entry and makes it its loop's first candidate. The caller must not touch it afterwards.
  void mark_idle(Entry<T>& entry, LoopId home) {
    search_states_[home].last.store(&entry, std::memory_order_release);
    mark_available(entry, home);
  }
  // Lists an entry that can be lent (again). Returns true if its bit was missing. May be called on any thread. seq_cst:
  // the word was changed, now the bit is read; pairs with clear_stale_bit().
  bool mark_available(Entry<T>& entry, LoopId home) {
    const bool missing = (entry.block->idle(home).read() & entry.bit()) == 0;
    if (missing) {
      entry.block->idle(home).set(entry.bit());
      note_highest(entry.place() + 1);
    }
    // The block is noted even if the bit was set: the thread that set it may not have reached this line yet.
    filled_.note(home, entry.block->first_place() / kBlockEntries);
    return missing;
  }

  // Must be called while no other thread uses the pool. Checks that every entry that can be lent is listed on its home
  // loop.
  void audit(AuditReport& report) const {
    filled_.audit(loops_, report);
    for (std::uint32_t number = 0; number < blocks_.count(); ++number) {
      Block<T>& block = blocks_.at(number);
      for (std::uint64_t bits = block.taken(); bits != 0; bits &= bits - 1) {
        const Entry<T>& entry = block.entry(SearchOrder::pick(bits));
        const EntryWord word(entry.word.load(std::memory_order_relaxed));
        report.expect(word.home() < loops_, "the home loop of an entry does not exist");
        if (!word.idle() && !word.lendable(entry.multiplexing().max_users)) continue;
        const bool listed = word.home() < loops_ && (block.idle(word.home()).read() & entry.bit()) != 0;
        report.expect(listed, "an available entry is not listed");
      }
    }
  }

 private:
  // The search state of a loop.
  struct alignas(kCacheLine) SearchState {
    // The last released entry; a stale one is harmless, the CAS decides. release/acquire: a reader sees a complete
    // block.
    Atomic<Entry<T>*> last{nullptr};
    // round_robin, random: where the last search ended; relaxed: only its spread matters.
    std::atomic<std::uint32_t> number{0};
    // random: the number of entries at the last count, and highest_listed_ then; relaxed: hints.
    std::atomic<std::uint32_t> places{0}, highest{0};
    std::atomic<std::uint32_t> random_state{0};  // of draw(); relaxed: only its spread matters
  };

  static constexpr unsigned kMaxSamples = 64;  // of draw()
  static constexpr std::uint32_t kRecountInterval = 16;

  // Records that an entry beyond all earlier ones is listed: `random` counts again, so that its next draw can select
  // it.
  void note_highest(std::uint32_t places) {
    std::uint32_t highest = highest_listed_.load(std::memory_order_relaxed);
    while (highest < places && !highest_listed_.compare_exchange_weak(highest, places, std::memory_order_relaxed)) {
    }
  }

  template <class Matcher>
  bool try_last_released(const SearchHint& where, Matcher& matcher, Found& found) {
    if (!where.on_loop) return false;
    Entry<T>* last = search_states_[where.loop].last.load(std::memory_order_acquire);
    if (last == nullptr || EntryWord(last->word.load(std::memory_order_relaxed)).home() != where.loop) return false;
    return attempt(*last, where, matcher, found);
  }

  // Searches the own loop's entries, then the other loops' in turn, each from the lowest position.
  template <class Matcher>
  bool own_loop_first(const SearchHint& where, Matcher& matcher, Found& found) {
    const std::uint32_t known = blocks_.count();
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(SearchOrder::foreign_loop(where.loop, n, loops_));
      if (in_blocks(0, known, where, map, matcher, found)) return true;
    }
    return false;
  }

  // As own_loop_first(), from position `start` on.
  template <class Matcher>
  bool own_loop_first_from(const SearchHint& where, std::uint32_t start, Matcher& matcher, Found& found) {
    const std::uint32_t known = blocks_.count(), first = start / kBlockEntries < known ? start / kBlockEntries : 0;
    if (known == 0) return false;
    const unsigned within = start % kBlockEntries;
    Block<T>& begin = blocks_.at(first);
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(SearchOrder::foreign_loop(where.loop, n, loops_));
      if (try_one_loop(begin, from_place(begin.idle(map).read(), within), where, map, matcher, found) ||
          in_blocks(first + 1, known, where, map, matcher, found) || in_blocks(0, first, where, map, matcher, found) ||
          try_one_loop(begin, before_place(begin.idle(map).read(), within), where, map, matcher, found)) {
        return true;
      }
    }
    return false;
  }

  // Searches the blocks [begin, end) for entries that the map of one loop lists.
  template <class Matcher>
  bool in_blocks(std::uint32_t begin, std::uint32_t end, const SearchHint& where, LoopId map, Matcher& matcher,
                 Found& found) {
    return filled_.visit(map, map + 1U, begin, end, [&](std::uint32_t number) {
      Block<T>& block = blocks_.at(number);
      std::uint64_t bits = block.idle(map).read();
      if (bits == 0 && filled_.leave(map, number)) {
        found.relisted = true;
        bits = block.idle(map).read();
      }
      return try_one_loop(block, bits, where, map, matcher, found);
    });
  }
  // As in_blocks(), for all loops.
  template <class Matcher>
  bool in_any_of(std::uint32_t begin, std::uint32_t end, const SearchHint& where, Matcher& matcher, Found& found) {
    return filled_.visit(0, loops_, begin, end, [&](std::uint32_t number) {
      Block<T>& block = blocks_.at(number);
      std::uint64_t bits = block.idle_anywhere();
      for (unsigned loop = 0; bits == 0 && loop < loops_; ++loop) {
        if (!filled_.leave(static_cast<LoopId>(loop), number)) continue;
        found.relisted = true;
        bits = block.idle_anywhere();
      }
      return try_any_loop(block, bits, where, matcher, found);
    });
  }

  template <class Matcher>
  bool at_random(const SearchHint& where, Matcher& matcher, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    SearchState& search_state = search_states_[where.loop];
    const std::uint32_t drawn = next_in_sequence(search_state.number.load(std::memory_order_relaxed));
    search_state.number.store(drawn, std::memory_order_relaxed);
    // The number of entries to draw from is only refreshed now and then; blocks fill from the lowest position.
    std::uint32_t places = search_state.places.load(std::memory_order_relaxed);
    const std::uint32_t highest = highest_listed_.load(std::memory_order_relaxed);
    if (highest != search_state.highest.load(std::memory_order_relaxed) || places == 0 ||
        drawn % kRecountInterval == 0) {
      search_state.highest.store(highest, std::memory_order_relaxed);
      places = (known - 1) * kBlockEntries +
               static_cast<std::uint32_t>(std::bit_width(blocks_.at(known - 1).idle_anywhere() | 1));
      search_state.places.store(places, std::memory_order_relaxed);
    }
    // As in by_round_robin(): the drawn entry is tried before the maps.
    const std::uint32_t place = scaled_to(drawn, places), first = place / kBlockEntries, within = place % kBlockEntries;
    Block<T>& begin = blocks_.at(first);
    Entry<T>* const entry = begin.find(within);
    return (entry != nullptr && attempt(*entry, where, matcher, found)) ||
           full_cycle(where, first, within, begin.idle_anywhere(), matcher, found);
  }

  // Each loop cycles through all entries on its own: no shared counter. The next entry is tried before the maps, which
  // are one cache line per loop: usually it is idle, and its word alone decides.
  template <class Matcher>
  bool by_round_robin(const SearchHint& where, Matcher& matcher, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    std::atomic<std::uint32_t>& number = search_states_[where.loop].number;
    const std::uint32_t next = number.load(std::memory_order_relaxed) + 1;
    std::uint32_t first = next / kBlockEntries;
    if (first >= known) first = 0;
    Entry<T>* const entry = blocks_.at(first).find(next % kBlockEntries);  // null: beyond the last one
    if ((entry == nullptr || !attempt(*entry, where, matcher, found)) &&
        !full_cycle(where, first, next % kBlockEntries, blocks_.at(first).idle_anywhere(), matcher, found)) {
      return false;
    }
    number.store(found.entry->place(), std::memory_order_relaxed);
    return true;
  }

  // Tries all entries of all loops once, from `within` of block `first`; `bits` are the available ones of that block.
  template <class Matcher>
  bool full_cycle(const SearchHint& where, std::uint32_t first, unsigned within, std::uint64_t bits, Matcher& matcher,
                  Found& found) {
    Block<T>& begin = blocks_.at(first);
    if (try_any_loop(begin, from_place(bits, within), where, matcher, found)) return true;
    const std::uint32_t known = blocks_.count();
    if (in_any_of(first + 1, known, where, matcher, found) || in_any_of(0, first, where, matcher, found)) return true;
    return try_any_loop(begin, before_place(begin.idle_anywhere(), within), where, matcher, found);
  }

  template <class Matcher>
  bool try_any_loop(Block<T>& block, std::uint64_t bits, const SearchHint& where, Matcher& matcher, Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(SearchOrder::pick(bits));
      if (attempt(entry, where, matcher, found) || clear_stale_bit(entry, 0, loops_, where, matcher, found))
        return true;
    }
    return false;
  }

  template <class Matcher>
  bool try_one_loop(Block<T>& block, std::uint64_t bits, const SearchHint& where, LoopId map, Matcher& matcher,
                    Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(SearchOrder::pick(bits));
      // false: another map lists it
      const bool here = EntryWord(entry.word.load(std::memory_order_seq_cst)).home() == map;
      if (here && attempt(entry, where, matcher, found)) return true;
      if (clear_stale_bit(entry, map, map + 1U, where, matcher, found)) return true;
    }
    return false;
  }

  // Retries the same entry after a lost race. Returns false if it cannot be lent or the matcher skips it.
  template <class Matcher>
  bool attempt(Entry<T>& entry, const SearchHint& where, Matcher& matcher, Found& found) {
    // seq_cst: a waiter raised `attention` before; a release changes the word, then reads `attention`.
    EntryWord word(entry.word.load(std::memory_order_seq_cst));
    for (;;) {
      const Multiplexing multiplexing = entry.multiplexing();
      if (!word.lendable(multiplexing.max_users) && !(where.include_unlendable && word.idle())) return false;
      const Match verdict = matcher(entry, word);
      if (verdict == Match::skip) return false;
      if (verdict == Match::take) {
        const Change change = try_acquire(entry.word, word, multiplexing.pinned ? word.home() : where.loop);
        if (!change) continue;
        found.taken = true;
        found.after = change.after;
        found.before = change.before;
      } else {
        found.before = found.after = word;
      }
      found.entry = &entry;
      return true;
    }
  }

  // A bit led to this entry, which could not be taken. Clears it in the maps [from, to) if the entry is taken or moved
  // to another loop. Returns true if the entry was released meanwhile and is now taken.
  template <class Matcher>
  [[gnu::cold, gnu::noinline]] bool clear_stale_bit(Entry<T>& entry, unsigned from, unsigned to,
                                                    const SearchHint& where, Matcher& matcher, Found& found) {
    const EntryWord word(entry.word.load(std::memory_order_seq_cst));
    const bool elsewhere = word.home() < from || word.home() >= to;
    if (!elsewhere && !word.taken(entry.multiplexing().max_users)) return false;
    for (unsigned loop = from; loop < to; ++loop) {
      Bitmap& idle = entry.block->idle(static_cast<LoopId>(loop));
      if ((idle.read() & entry.bit()) != 0) idle.clear(entry.bit());
    }
    // A user may have left before that and relied on the bit, or the limit may have grown. seq_cst on all: those change
    // word or limit, then read the bit; here the bit was cleared, then both are read.
    const EntryWord again(entry.word.load(std::memory_order_seq_cst));
    const Multiplexing now = Multiplexing::of(entry.multiplexing_bits.load(std::memory_order_seq_cst));
    if (!again.idle() && !again.lendable(now.max_users)) return false;
    if (mark_available(entry, again.home())) found.relisted = true;
    return !elsewhere && attempt(entry, where, matcher, found);
  }

  const Blocks<T>& blocks_;
  const unsigned loops_;
  FilledBlocks<T> filled_;
  std::unique_ptr<SearchState[]> search_states_;
  std::atomic<std::uint32_t> highest_listed_{0};  // one above the last place ever listed; relaxed: a hint
};

}  // namespace carpool::pool
