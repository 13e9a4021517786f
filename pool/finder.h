// Finder: what is free, and who takes it. A search reads the bitmaps, judges each candidate and takes it by one
// compare-and-swap on its word; the word alone decides, a bit is only advice.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "pool/atomic.h"
#include "pool/blocks.h"
#include "pool/entry.h"
#include "pool/search.h"

namespace carpool::pool {

// A judge's word on a candidate. `doomed`: it must be closed; the search stops so that the caller can do it.
enum class Verdict : std::uint8_t { take, skip, doomed };

template <class T>
class Finder {
 public:
  // What a search found. taken: `after` is the state won. Otherwise `entry`, when set, is doomed in state `before`.
  struct Found {
    Entry<T>* entry = nullptr;
    bool taken = false;
    // It was hidden for a moment while a user left it: whoever looked then found nothing, so the caller looks after who
    // waits.
    bool relisted = false;
    Word before, after;
  };

  Finder(const Blocks<T>& blocks, unsigned loops)
      : blocks_(blocks), loops_(loops), memory_(std::make_unique<Memory[]>(loops)) {
    for (unsigned loop = 0; loop < loops; ++loop) {
      memory_[loop].number.store(0x9E3779B9U * (loop + 1), std::memory_order_relaxed);
    }
  }

  // True: the search is over, with `found`. judge(entry, word) is asked before each attempt. `places`: of the key.
  template <class Judge>
  bool find(const Where& where, std::uint32_t places, Judge& judge, Found& found) {
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
  void rest(Entry<T>& entry, LoopId home) {
    memory_[home].last.store(&entry, std::memory_order_release);
    entry.block->idle(home).set(entry.bit());
  }
  // A shared entry can be lent (again): findable, if it is not already. Any thread.
  static void list(Entry<T>& entry, LoopId home) {
    Bitmap& idle = entry.block->idle(home);
    if ((idle.read() & entry.bit()) == 0) idle.set(entry.bit());
  }

 private:
  // What a loop remembers.
  struct alignas(kCacheLine) Memory {
    // Given back last; a stale one is harmless, the CAS decides. release and acquire: who follows it finds a whole
    // block.
    std::atomic<Entry<T>*> last{nullptr};
    std::atomic<std::uint32_t> number{0};  // of round_robin, random: where the last search ended; relaxed: only its
                                           // spread matters
  };

  template <class Judge>
  bool hint(const Where& where, Judge& judge, Found& found) {
    if (!where.on_loop) return false;
    Entry<T>* last = memory_[where.loop].last.load(std::memory_order_acquire);
    if (last == nullptr || Word(last->word.load(std::memory_order_relaxed)).home() != where.loop) return false;
    return attempt(*last, where, where.loop, judge, found);
  }

  // The own loop's, then the others' in turn; from the lowest place of each.
  template <class Judge>
  bool near(const Where& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(FirstPlace::foreign_loop(where.loop, n, loops_));
      for (std::uint32_t number = 0; number < known; ++number) {
        Block<T>& block = blocks_.at(number);
        if (among(block, block.idle(map).read(), where, map, judge, found)) return true;
      }
    }
    return false;
  }

  // As near(), beginning at a place.
  template <class Judge>
  bool near_from(const Where& where, std::uint32_t start, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count(), first = start / kBlockEntries < known ? start / kBlockEntries : 0;
    for (unsigned n = 0; n < loops_; ++n) {
      const auto map = static_cast<LoopId>(FirstPlace::foreign_loop(where.loop, n, loops_));
      for (std::uint32_t step = 0; step <= known && known != 0; ++step) {  // the first block twice: from, and below
        Block<T>& block = blocks_.at((first + step) % known);
        std::uint64_t bits = block.idle(map).read();
        if (step == 0) bits = from_place(bits, start % kBlockEntries);
        if (step == known) bits = before_place(bits, start % kBlockEntries);
        if (among(block, bits, where, map, judge, found)) return true;
      }
    }
    return false;
  }

  template <class Judge>
  bool at_random(const Where& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    std::atomic<std::uint32_t>& number = memory_[where.loop].number;
    const std::uint32_t drawn = drawn_after(number.load(std::memory_order_relaxed));
    number.store(drawn, std::memory_order_relaxed);
    const std::uint32_t first = known == 1 ? 0 : lot(drawn, known);
    Block<T>& begin = blocks_.at(first);
    const std::uint64_t bits = begin.idle_anywhere();
    // Below the highest that rests: a block is filled from below. Other bits of the number than chose the block.
    const auto height = static_cast<std::uint32_t>(std::bit_width(bits | 1));
    return round(where, first, lot(known == 1 ? drawn : drawn_after(drawn), height), bits, judge, found);
  }

  // Each loop goes round all entries by itself: no number is shared. The place whose turn it is is asked first, and not
  // the maps, which are as many lines to read as there are loops: mostly it is free, and its word alone decides.
  template <class Judge>
  bool in_turn(const Where& where, Judge& judge, Found& found) {
    const std::uint32_t known = blocks_.count();
    if (known == 0) return false;
    std::atomic<std::uint32_t>& number = memory_[where.loop].number;
    const std::uint32_t next = number.load(std::memory_order_relaxed) + 1;
    std::uint32_t first = next / kBlockEntries;
    if (first >= known) first = 0;
    if (!here(blocks_.at(first).entry(next % kBlockEntries), where, judge, found) &&
        !round(where, first, next % kBlockEntries, blocks_.at(first).idle_anywhere(), judge, found)) {
      return false;
    }
    number.store(found.entry->place(), std::memory_order_relaxed);
    return true;
  }

  // Round all places once, whosever they are, from `within` of the block `first`, whose free ones are `bits`.
  template <class Judge>
  bool round(const Where& where, std::uint32_t first, unsigned within, std::uint64_t bits, Judge& judge, Found& found) {
    Block<T>& begin = blocks_.at(first);
    if (whosever(begin, from_place(bits, within), where, judge, found)) return true;
    const std::uint32_t known = blocks_.count();
    for (std::uint32_t n = 1; n < known; ++n) {
      Block<T>& block = blocks_.at(first + n < known ? first + n : first + n - known);
      if (whosever(block, block.idle_anywhere(), where, judge, found)) return true;
    }
    return whosever(begin, before_place(begin.idle_anywhere(), within), where, judge, found);
  }

  template <class Judge>
  bool whosever(Block<T>& block, std::uint64_t bits, const Where& where, Judge& judge, Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      if (here(block.entry(FirstPlace::pick(bits)), where, judge, found)) return true;
    }
    return false;
  }

  // Whosever it is.
  template <class Judge>
  bool here(Entry<T>& entry, const Where& where, Judge& judge, Found& found) {
    return attempt(entry, where, Word(entry.word.load(std::memory_order_relaxed)).home(), judge, found);
  }

  template <class Judge>
  bool among(Block<T>& block, std::uint64_t bits, const Where& where, LoopId map, Judge& judge, Found& found) {
    for (; bits != 0; bits &= bits - 1) {
      if (attempt(block.entry(FirstPlace::pick(bits)), where, map, judge, found)) return true;
    }
    return false;
  }

  // A lost race is tried again on the same entry; only one that cannot be lent, or is not wanted, ends the attempt.
  // False: go on with the next.
  template <class Judge>
  bool attempt(Entry<T>& entry, const Where& where, LoopId map, Judge& judge, Found& found) {
    Word word(entry.word.load(std::memory_order_acquire));
    for (;;) {
      const Sharing sharing = entry.sharing();
      if (!word.lendable(sharing.most)) return false;
      const Verdict verdict = judge(entry, word);
      if (verdict == Verdict::skip) return false;
      if (verdict == Verdict::take) {
        const Change change = try_acquire(entry.word, word, sharing.stays ? word.home() : where.loop);
        if (!change) continue;
        if (change.after.users() >= sharing.most) found.relisted = unlist(entry, change, map, sharing);
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

  // Only the winner of the acquiring CAS clears the bit, so none is lost. With a hint or a late setter a map may name
  // an entry that is not free, or moved: harmless, the word decides.
  static bool unlist(Entry<T>& entry, const Change& change, LoopId map, Sharing sharing) {
    const LoopId home = change.before.home();
    entry.block->idle(home).clear(entry.bit());
    if (map != home) entry.block->idle(map).clear(entry.bit());
    if (!sharing.stays) return false;
    // Another user may have left between the CAS and the clear, or the limit grown: then the bit was theirs. seq_cst on
    // all: they change word or limit, then look at the bit; here the bit was cleared, then both are read.
    const Word word(entry.word.load(std::memory_order_seq_cst));
    const Sharing now = Sharing::of(entry.sharing_bits.load(std::memory_order_seq_cst));
    if (!word.lendable(now.most)) return false;
    entry.block->idle(word.home()).set(entry.bit());
    return true;
  }

  const Blocks<T>& blocks_;
  const unsigned loops_;
  std::unique_ptr<Memory[]> memory_;
};

}  // namespace carpool::pool
