// Blocks: where a pool's entries are. Blocks of 64 are appended by need and never freed or moved before their pool, so
// whoever holds a pointer to an entry may always read its word; the n-th block is found in two steps, however many.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>

#include "pool/atomic.h"
#include "pool/entry.h"
#include "pool/entry_index.h"

namespace carpool::pool {

template <class T>
class Blocks {
 public:
  // `index`: where the entries' numbers come from; null: they are the pool's own.
  Blocks(unsigned loops, EntryIndex* index) : loops_(loops), index_(index) {}
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    if (index_ == nullptr) return;
    for (std::uint32_t n = 0; n < count(); ++n) index_->withdraw(at(n).entry(0).index);
  }

  // acquire: pairs with grow(); what is below the count is complete, and never changes.
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  Block<T>& at(std::uint32_t number) const {  // number < a count that was read
    if (number == 0) return *first_;          // most pools have no other
    const unsigned segment = static_cast<unsigned>(std::bit_width(number + 1)) - 1;
    return *segments_[segment][number + 1 - (std::uint32_t{1} << segment)];
  }

  // An entry nobody has; its bit is claimed. Null: every place is taken.
  Entry<T>* claim_vacant() {
    const std::uint32_t known = count();
    for (std::uint32_t n = 0; n < known; ++n) {
      Block<T>& block = at(n);
      for (std::uint64_t bits = block.vacant().read(); bits != 0; bits &= bits - 1) {
        Entry<T>& entry = block.entry(static_cast<unsigned>(std::countr_zero(bits)));
        if (block.vacant().claim(entry.bit())) return &entry;
      }
    }
    return nullptr;
  }

  // One block more, unless somebody was faster. Throws std::bad_alloc, and then nothing changed.
  void grow() {
    const std::scoped_lock lock(growing_);
    const std::uint32_t known = count_.load(std::memory_order_relaxed);  // written under the lock
    for (std::uint32_t n = 0; n < known; ++n) {
      if (at(n).vacant().read() != 0) return;  // somebody was faster
    }
    const unsigned segment = static_cast<unsigned>(std::bit_width(known + 1)) - 1;
    const std::uint32_t size = std::uint32_t{1} << segment;
    if (segments_[segment] == nullptr) segments_[segment] = std::make_unique<std::unique_ptr<Block<T>>[]>(size);
    auto block = std::make_unique<Block<T>>(loops_);
    const EntryIndex::Place place = index_ != nullptr ? index_->reserve() : EntryIndex::Place{known * kBlockEntries, 1};
    block->number(place.first_index, known * kBlockEntries, place.generation);
    if (index_ != nullptr) index_->publish(place, *block);
    if (known == 0) first_ = block.get();
    segments_[segment][known + 1 - size] = std::move(block);
    count_.store(known + 1, std::memory_order_release);  // pairs with count()
  }

 private:
  static constexpr unsigned kSegments = 26;  // a cap has 31 bits, a block 64 entries

  const unsigned loops_;
  EntryIndex* const index_;
  Atomic<std::uint32_t> count_{0};
  Block<T>* first_ = nullptr;
  // The n-th has 2^n blocks. Plain: an element is written before the count that covers it.
  std::array<std::unique_ptr<std::unique_ptr<Block<T>>[]>, kSegments> segments_;
  Mutex growing_;
};

}  // namespace carpool::pool
