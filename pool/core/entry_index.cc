#include "pool/core/entry_index.h"

#include <algorithm>
#include <new>

namespace carpool::pool {

EntryIndex& EntryIndex::process() {
  static EntryIndex index;  // half a megabyte of zeros: untouched pages cost nothing
  return index;
}

EntryIndex::Place EntryIndex::reserve() {
  const Held lock(mutex_);
  if (!free_.empty()) {
    const Place place = free_.back();
    free_.pop_back();
    return place;
  }
  if (used_ == kBlocks) throw std::bad_alloc();
  // withdraw() must not allocate. Twice the size: a burst of new blocks allocates a few times, not once for each.
  if (free_.capacity() <= used_) free_.reserve(std::max<std::size_t>(64, std::size_t{2} * used_));
  return {used_++ * kBlockEntries, 1};
}

bool EntryIndex::full() const {
  const Held lock(mutex_);
  return used_ == kBlocks && free_.empty();
}

void EntryIndex::publish(const Place& place, BlockBase& block) {
  // release: pairs with the acquire in find().
  blocks_[place.first_index / kBlockEntries].store(&block, std::memory_order_release);
}

void EntryIndex::withdraw(std::uint32_t first_index) {
  const Held lock(mutex_);
  Atomic<BlockBase*>& slot = blocks_[first_index / kBlockEntries];
  BlockBase& block = *slot.load(std::memory_order_relaxed);
  std::uint32_t highest = 0;
  for (unsigned place = 0; place < kBlockEntries; ++place) {
    const EntryBase* const entry = block.find(place);
    if (entry == nullptr) break;
    highest = std::max(highest, EntryWord(entry->word.load(std::memory_order_relaxed)).generation());
  }
  slot.store(nullptr, std::memory_order_release);
  free_.push_back({first_index, highest == EntryWord::kMaxGeneration ? 1 : highest + 1});
}

}  // namespace carpool::pool
