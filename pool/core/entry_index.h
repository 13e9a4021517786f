// EntryIndex: maps the 32-bit number in a readiness event to its entry, process-wide and without a lock. A number is
// reused only after its pool is destroyed, with generations above all that were used with it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pool/atomic.h"
#include "pool/core/entry.h"

namespace carpool::pool {

class EntryIndex {
 public:
  // The maximum number of blocks of all pools together. A pool takes its first block with its first connection.
  static constexpr std::uint32_t kBlocks = 1u << 16;

  static EntryIndex& process();

  // Returns the entry, or null if its pool is gone or has not made it yet. The pointer is valid as long as its
  // destination lives.
  EntryBase* find(std::uint32_t index) const {
    const std::uint32_t number = index / kBlockEntries;
    if (number >= kBlocks) return nullptr;
    // acquire: pairs with publish(); the block is complete.
    BlockBase* block = blocks_[number].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : block->find(index % kBlockEntries);
  }

  struct Place {
    std::uint32_t first_index = 0;
    std::uint32_t generation = 1;  // the first one to use
  };
  // Returns numbers for one more block; publish() makes it findable. Throws std::bad_alloc when kBlocks are in use or
  // memory is exhausted.
  Place reserve() EXCLUDES(mutex_);
  // Returns true while every number is in use: a pool without a block cannot open its first connection.
  bool full() const EXCLUDES(mutex_);
  void publish(const Place& place, BlockBase& block);
  // Removes the block. No thread may look up its numbers any more.
  void withdraw(std::uint32_t first_index) EXCLUDES(mutex_);

 private:
  std::array<Atomic<BlockBase*>, kBlocks> blocks_{};
  mutable Mutex mutex_;
  std::vector<Place> free_ GUARDED_BY(mutex_);
  std::uint32_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::pool
