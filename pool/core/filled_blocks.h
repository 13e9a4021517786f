// FilledBlocks: which blocks have something free, a bit for each block and loop, so that a search reads one word for 64
// blocks and not the maps of all. A bit leaves when a search follows it in vain, and comes back with the next entry
// that is listed there; the first block, the only one of most pools, is always noted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

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

  // The block's map of `loop` has a bit that was set, or seen, before. seq_cst: the pair of leave().
  void note(LoopId loop, std::uint32_t number) {
    if (number == 0) return;
    Bitmap& noted = word(loop, number);
    if ((noted.read() & bit(number)) == 0) noted.set(bit(number));
  }
  // The block's map was empty. True: an entry was listed meanwhile, and its owner may have relied on the bit that was
  // gone for a moment; the block is noted again.
  [[gnu::cold, gnu::noinline]] bool leave(LoopId loop, std::uint32_t number) {
    if (number == 0) return false;
    Bitmap& noted = word(loop, number);
    if ((noted.read() & bit(number)) == 0) return false;
    noted.clear(bit(number));
    if (blocks_.at(number).idle(loop).read() == 0) return false;
    noted.set(bit(number));
    return true;
  }

  // visit(number) for the blocks [begin, end) that are noted for a loop of [from, to), until it returns true.
  template <class Visit>
  bool visit(unsigned from, unsigned to, std::uint32_t begin, std::uint32_t end, Visit&& visit) {
    for (std::uint32_t at = begin; at < end; at = first_of(at) + kBlocksOfAWord) {
      std::uint64_t bits = 0;
      for (unsigned loop = from; loop < to; ++loop) bits |= word(static_cast<LoopId>(loop), at).read();
      for (bits = from_place(bits, at % kBlocksOfAWord); bits != 0; bits &= bits - 1) {
        const std::uint32_t number = first_of(at) + FirstPlace::pick(bits);
        if (number >= end) return false;
        if (visit(number)) return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::uint32_t first_of(std::uint32_t number) { return number / kBlocksOfAWord * kBlocksOfAWord; }
  static constexpr std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << (number % kBlocksOfAWord); }
  Bitmap& word(LoopId loop, std::uint32_t number) {
    return number < kBlocksOfAWord ? first_[loop] : blocks_.at(first_of(number)).filled(loop);
  }

  const Blocks<T>& blocks_;
  std::unique_ptr<Bitmap[]> first_;  // one for each loop, of the first 64 blocks; of others the first block has it
};

}  // namespace carpool::pool
