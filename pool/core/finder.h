// Finder: what is free, and who takes it. A search reads the bitmaps, judges each candidate and takes it by one
// compare-and-swap on its word; the word alone decides, a bit is only advice.
//
// Who borrows leaves the maps alone, so that a hit is one compare-and-swap, and threads that take in turn share no line
// but the entries'. A bit may therefore lead to what is lent, and a search that follows it in vain takes it away. Who
// gives back sets it if it is missing. So whatever is free is listed, but for a moment that somebody ends who looks
// after those who wait.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "pool/core/atomic.h"
#include "pool/core/blocks.h"
#include "pool/core/entry.h"
#include "pool/core/filled_blocks.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

// A judge's word on a candidate. `evict`: it must be closed; the search stops so that the caller can do it.
enum class Match : std::uint8_t { take, skip, evict };

template <class T>
class Finder {
 public:
  // What a search found. taken: `after` is the state won. Otherwise `entry`, when set, is doomed in state `before`.
  struct Found {
    Entry<T>* entry = nullptr;
    bool taken = false;
    // Something was hidden for a moment while its user gave it back: whoever looked then found nothing, so the caller
    // looks after who waits.
    bool relisted = false;
    EntryWord before, after;
  };

  Finder(const Blocks<T>& blocks, unsigned loops)
      : blocks_(blocks), loops_(loops), filled_(blocks, loops), memory_(std::make_unique<Memory[]>(loops)) {
    for (unsigned loop = 0; loop < loops; ++loop) {
      memory_[loop].number.store(0x9E3779B9U * (loop + 1), std::memory_order_relaxed);
    }
  }

  // True: the search is over, with `found`. judge(entry, word) is asked before each attempt. `places`: of the key.
  template <class Judge>
  bool find(const SearchHint& where, std::uint32_t places, Judge& judge, Found& found) {
    switch (where.strategy) {
      case Strategy::first:
        return hint(where, judge, found) || near(where, judge, found);
      case Strategy::thread_id:
        return hint(where, judge, found) || near_from(where, places == 0 ? 0 : where.key % places, judge, found);
      case Strategy::random:
        return at_random(where, judge, found);
      case Strategy::round_robin:
        return in_turn(where, judge, found);
    }
    return false;
  }

  // It came to rest: findable, and the next that its loop looks at. The caller touches it no more.
  void mark_idle(Entry<T>& entry, LoopId home) {
    memory_[home].last.store(&entry, std::memory_order_release);
    mark_available(entry, home);
  }
  // It can be lent (again): findable, if it is not already. Any thread. seq_cst: the word was changed, now the bit is
  // read; the pair of clear_stale_bit().
  // True: it was missing.
  bool mark_available(Entry<T>& entry, LoopId home) {
    const bool missing = (entry.block->idle(home).read() & entry.bit()) == 0;
    if (missing) entry.block->idle(home).set(entry.bit());
    // Also if it was there: another thread that set it may not have come to this yet.
    filled_.note(home, entry.block->first_place() / kBlockEntries);
    return missing;
  }

 private:
  // What a loop remembers.
  struct alignas(kCacheLine) Memory {
    // Given back last; a stale one is harmless, the CAS decides. release and acquire: who follows it finds a whole
    // block.
    std::atomic<Entry<T>*> last{nullptr};
    std::atomic<std::uint32_t> number{0};  // of round_robin, random: where the last search ended; relaxed: only its
                                           // spread matters
    std::atomic<std::uint32_t> places{0};  // of random: how many there were when it looked last; relaxed: advice
  };

  static constexpr std::uint32_t kLookAgain = 16;

  template <class Judge>
  bool hint(const SearchHint& where, Judge& judge, Found& found) {
    if (!where.on_loop) return false;
    Entry<T>* last = memory_[where.loop].last.load(std::memory_order_acquire);
    if (last == nullptr || EntryWord(last->word.load(std::memory_order_relaxed)).home() != where.loop) return false;
    return attempt(*last, where, judge, found);
  }

  // The own loop's, then the others' in turn; from the lowest place of each.
  template <class Judge>
  bool near(const SearchHint& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(FirstPlace::foreign_loop(where.loop, n, loops_));
      if (in_blocks(0, known, where, map, judge, found)) return true;
    }
    return false;
  }

  // As near(), beginning at a place.
  template <class Judge>
  bool near_from(const SearchHint& where, std::uint32_t start, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count(), first = start / kBlockEntries < known ? start / kBlockEntries : 0;
    if (known == 0) return false;
    const unsigned within = start % kBlockEntries;
    Block<T>& begin = blocks_.at(first);
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(FirstPlace::foreign_loop(where.loop, n, loops_));
      if (among(begin, from_place(begin.idle(map).read(), within), where, map, judge, found) ||
          in_blocks(first + 1, known, where, map, judge, found) || in_blocks(0, first, where, map, judge, found) ||
          among(begin, before_place(begin.idle(map).read(), within), where, map, judge, found)) {
        return true;
      }
    }
    return false;
  }

  // The blocks [begin, end), as far as the map of one loop calls something in them free.
  template <class Judge>
  bool in_blocks(std::uint32_t begin, std::uint32_t end, const SearchHint& where, LoopId map, Judge& judge,
                 Found& found) {
    return filled_.visit(map, map + 1U, begin, end, [&](std::uint32_t number) {
      Block<T>& block = blocks_.at(number);
      std::uint64_t bits = block.idle(map).read();
      if (bits == 0 && filled_.leave(map, number)) {
        found.relisted = true;
        bits = block.idle(map).read();
      }
      return among(block, bits, where, map, judge, found);
    });
  }
  // As in_blocks(), whosever the entries are.
  template <class Judge>
  bool in_any_of(std::uint32_t begin, std::uint32_t end, const SearchHint& where, Judge& judge, Found& found) {
    return filled_.visit(0, loops_, begin, end, [&](std::uint32_t number) {
      Block<T>& block = blocks_.at(number);
      std::uint64_t bits = block.idle_anywhere();
      for (unsigned loop = 0; bits == 0 && loop < loops_; ++loop) {
        if (!filled_.leave(static_cast<LoopId>(loop), number)) continue;
        found.relisted = true;
        bits = block.idle_anywhere();
      }
      return whosever(block, bits, where, judge, found);
    });
  }

  template <class Judge>
  bool at_random(const SearchHint& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    Memory& memory = memory_[where.loop];
    const std::uint32_t drawn = drawn_after(memory.number.load(std::memory_order_relaxed));
    memory.number.store(drawn, std::memory_order_relaxed);
    // How many places there are to draw from is looked up now and then: a block is filled from below.
    std::uint32_t places = memory.places.load(std::memory_order_relaxed);
    if (places == 0 || drawn % kLookAgain == 0) {
      places = (known - 1) * kBlockEntries +
               static_cast<std::uint32_t>(std::bit_width(blocks_.at(known - 1).idle_anywhere() | 1));
      memory.places.store(places, std::memory_order_relaxed);
    }
    // As in_turn(): the place that was drawn is asked before the maps.
    const std::uint32_t place = lot(drawn, places), first = place / kBlockEntries, within = place % kBlockEntries;
    Block<T>& begin = blocks_.at(first);
    return attempt(begin.entry(within), where, judge, found) ||
           round(where, first, within, begin.idle_anywhere(), judge, found);
  }

  // Each loop goes round all entries by itself: no number is shared. The place whose turn it is is asked first, and not
  // the maps, which are as many lines to read as there are loops: mostly it is free, and its word alone decides.
  template <class Judge>
  bool in_turn(const SearchHint& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    std::atomic<std::uint32_t>& number = memory_[where.loop].number;
    const std::uint32_t next = number.load(std::memory_order_relaxed) + 1;
    std::uint32_t first = next / kBlockEntries;
    if (first >= known) first = 0;
    if (!attempt(blocks_.at(first).entry(next % kBlockEntries), where, judge, found) &&
        !round(where, first, next % kBlockEntries, blocks_.at(first).idle_anywhere(), judge, found)) {
      return false;
    }
    number.store(found.entry->place(), std::memory_order_relaxed);
    return true;
  }

  // Round all places once, whosever they are, from `within` of the block `first`, whose free ones are `bits`.
  template <class Judge>
  bool round(const SearchHint& where, std::uint32_t first, unsigned within, std::uint64_t bits, Judge& judge,
             Found& found) {
    Block<T>& begin = blocks_.at(first);
    if (whosever(begin, from_place(bits, within), where, judge, found)) return true;
    const std::uint32_t known = blocks_.count();
    if (in_any_of(first + 1, known, where, judge, found) || in_any_of(0, first, where, judge, found)) return true;
    return whosever(begin, before_place(begin.idle_anywhere(), within), where, judge, found);
  }

  template <class Judge>
  bool whosever(Block<T>& block, std::uint64_t bits, const SearchHint& where, Judge& judge, Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(FirstPlace::pick(bits));
      if (attempt(entry, where, judge, found) || clear_stale_bit(entry, 0, loops_, where, judge, found)) return true;
    }
    return false;
  }

  template <class Judge>
  bool among(Block<T>& block, std::uint64_t bits, const SearchHint& where, LoopId map, Judge& judge, Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(FirstPlace::pick(bits));
      const bool here = EntryWord(entry.word.load(std::memory_order_seq_cst)).home() == map;  // else another map has it
      if (here && attempt(entry, where, judge, found)) return true;
      if (clear_stale_bit(entry, map, map + 1U, where, judge, found)) return true;
    }
    return false;
  }

  // A lost race is tried again on the same entry; only one that cannot be lent, or is not wanted, ends the attempt.
  // False: go on with the next.
  template <class Judge>
  bool attempt(Entry<T>& entry, const SearchHint& where, Judge& judge, Found& found) {
    // seq_cst: who stands in line raised `attention` before, who gives back changes the word and reads that.
    EntryWord word(entry.word.load(std::memory_order_seq_cst));
    for (;;) {
      const Multiplexing multiplexing = entry.multiplexing();
      if (!word.lendable(multiplexing.most) && !(where.to_end && word.idle())) return false;
      const Match verdict = judge(entry, word);
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

  // A bit led to this entry in vain. If it is taken, or another loop's by now, its bit leaves the maps [from, to).
  // True: it was given back meanwhile, and is taken after all.
  template <class Judge>
  [[gnu::cold, gnu::noinline]] bool clear_stale_bit(Entry<T>& entry, unsigned from, unsigned to,
                                                    const SearchHint& where, Judge& judge, Found& found) {
    const EntryWord word(entry.word.load(std::memory_order_seq_cst));
    const bool elsewhere = word.home() < from || word.home() >= to;
    if (!elsewhere && !word.taken(entry.multiplexing().most)) return false;
    for (unsigned loop = from; loop < to; ++loop) {
      Bitmap& idle = entry.block->idle(static_cast<LoopId>(loop));
      if ((idle.read() & entry.bit()) != 0) idle.clear(entry.bit());
    }
    // Its user may have left before that, seen the bit and relied on it, or the limit grown. seq_cst on all: they
    // change word or limit, then look at the bit; here the bit was cleared, then both are read.
    const EntryWord again(entry.word.load(std::memory_order_seq_cst));
    const Multiplexing now = Multiplexing::of(entry.multiplexing_bits.load(std::memory_order_seq_cst));
    if (!again.idle() && !again.lendable(now.most)) return false;
    if (mark_available(entry, again.home())) found.relisted = true;
    return !elsewhere && attempt(entry, where, judge, found);
  }

  const Blocks<T>& blocks_;
  const unsigned loops_;
  FilledBlocks<T> filled_;
  std::unique_ptr<Memory[]> memory_;
};

}  // namespace carpool::pool
