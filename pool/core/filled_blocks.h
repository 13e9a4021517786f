// FilledBlocks: one bit per block and loop that marks blocks with available entries, so that a search reads one word
// for 64 blocks instead of every block's maps. A search that finds the block empty clears the bit; the next entry that
// is listed there sets it again. The first block, the only one of most pools, is always marked.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "pool/core/audit_report.h"
#include "pool/core/blocks.h"
#include "pool/core/entry.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

template <class T>
class FilledBlocks {
 public:
  FilledBlocks(const Blocks<T>& blocks, unsigned loops) : blocks_(blocks), first_(std::make_unique<Bitmap[]>(loops)) {
    for (unsigned loop = 0; loop < loops; ++loop) first_[loop].bits.store(1, std::memory_order_relaxed);
  }

  // Marks a block whose map of `loop` has a set bit, even if that bit was set before. seq_cst: pairs with leave().
  void note(LoopId loop, std::uint32_t number) {
    if (number == 0) return;
    Bitmap& noted = word(loop, number);
    if ((noted.read() & bit(number)) == 0) noted.set(bit(number));
  }
  // Clears the mark of a block whose map was empty. Returns true if an entry was listed meanwhile, whose owner may have
  // relied on the mark; the mark is then set again.
  [[gnu::cold, gnu::noinline]] bool leave(LoopId loop, std::uint32_t number) {
    if (number == 0) return false;
    Bitmap& noted = word(loop, number);
    if ((noted.read() & bit(number)) == 0) return false;
    noted.clear(bit(number));
    if (blocks_.at(number).idle(loop).read() == 0) return false;
    noted.set(bit(number));
    return true;
  }

  // Calls visit(number) for the marked blocks in [begin, end) of the loops [from, to) until it returns true.
  template <class Visit>
  bool visit(unsigned from, unsigned to, std::uint32_t begin, std::uint32_t end, Visit&& visit) {
    for (std::uint32_t at = begin; at < end; at = first_of(at) + kBlocksOfAWord) {
      std::uint64_t bits = 0;
      for (unsigned loop = from; loop < to; ++loop) bits |= word(static_cast<LoopId>(loop), at).read();
      for (bits = from_place(bits, at % kBlocksOfAWord); bits != 0; bits &= bits - 1) {
        const std::uint32_t number = first_of(at) + SearchOrder::pick(bits);
        if (number >= end) return false;
        if (visit(number)) return true;
      }
    }
    return false;
  }

  // Must be called while no other thread uses the pool. Checks that every block that lists an entry is marked.
  void audit(unsigned loops, AuditReport& report) const {
    for (std::uint32_t number = 1; number < blocks_.count(); ++number) {
      for (unsigned loop = 0; loop < loops; ++loop) {
        const auto home = static_cast<LoopId>(loop);
        const bool marked = (word(home, number).read() & bit(number)) != 0;
        report.expect(marked || blocks_.at(number).idle(home).read() == 0, "a block with idle entries is not marked");
      }
    }
  }

 private:
  static constexpr std::uint32_t first_of(std::uint32_t number) { return number / kBlocksOfAWord * kBlocksOfAWord; }
  static constexpr std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << (number % kBlocksOfAWord); }
  Bitmap& word(LoopId loop, std::uint32_t number) const {
    return number < kBlocksOfAWord ? first_[loop] : blocks_.at(first_of(number)).filled(loop);
  }

  const Blocks<T>& blocks_;
  // one per loop, for the first 64 blocks; other groups keep theirs in their leading block
  std::unique_ptr<Bitmap[]> first_;
};

}  // namespace carpool::pool
