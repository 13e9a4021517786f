// Blocks: the storage of a pool's entries. Blocks of 64 are appended on demand and are neither freed nor moved before
// the pool is destroyed, so a pointer to an entry stays valid. The n-th block is found in two steps, whatever n is. The
// first block makes its entries as they are needed, because most pools use few; the others are made whole.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "pool/atomic.h"
#include "pool/core/audit_report.h"
#include "pool/core/entry.h"
#include "pool/core/entry_index.h"
#include "pool/policy/search_strategy.h"

namespace carpool::pool {

template <class T>
class Blocks {
 public:
  // `index` assigns process-wide numbers to the entries; null: numbers are local to the pool.
  Blocks(unsigned loops, EntryIndex* index) : loops_(loops), index_(index) {}
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    if (index_ == nullptr) return;
    for (std::uint32_t n = 0; n < count(); ++n) index_->withdraw(at(n).entry(0).index);
  }

  // acquire: pairs with grow(). Blocks below the count are complete and never change.
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  Block<T>& at(std::uint32_t number) const {  // `number` must be below a count that was read
    if (number == 0) return *first_;          // most pools have only this block
    const std::uint32_t position = number + 1;
    const unsigned segment = static_cast<unsigned>(std::bit_width(position)) - 1;
    return *segments_[segment][position - std::bit_floor(position)];
  }

  // Returns a vacant entry, whose vacant bit is now cleared, or null if there is none. The maps of open blocks are
  // hints, so every block is searched before null is returned and the caller appends one.
  Entry<T>* claim_vacant() {
    const std::uint32_t known = count();
    for (std::uint32_t first = 0; first < known; first += kBlocksOfAWord) {
      for (std::uint64_t bits = open(first).read(); bits != 0; bits &= bits - 1) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(std::countr_zero(bits));
        if (number >= known) break;  // appended after the count was read
        if (Entry<T>* entry = claim_in(number)) return entry;
        leave_open(number);
      }
    }
    for (std::uint32_t number = 0; number < known; ++number) {
      if (Entry<T>* entry = claim_in(number)) return entry;
    }
    return nullptr;
  }
  // Marks the entry vacant again.
  void give_back(Entry<T>& entry) {
    entry.block->vacant().set(entry.bit());
    note_open(entry.block->first_place() / kBlockEntries);
  }

  // Adds entries to the first block, or appends a block, unless another thread did. Throws std::bad_alloc; nothing
  // changes then.
  void grow() EXCLUDES(growing_) {
    const Held lock(growing_);
    const std::uint32_t known = count_.load(std::memory_order_relaxed);  // written under the lock
    for (std::uint32_t n = 0; n < known; ++n) {
      if (at(n).vacant().read() != 0) return;  // another thread appended one
    }
    if (known == 1 && first_->extend()) return note_open(0);
    const unsigned segment = static_cast<unsigned>(std::bit_width(known + 1)) - 1;
    const std::uint32_t size = std::uint32_t{1} << segment;
    if (segments_[segment] == nullptr) segments_[segment] = std::make_unique<std::unique_ptr<Block<T>>[]>(size);
    auto block = std::make_unique<Block<T>>(loops_, known != 0 && known % kBlocksOfAWord == 0);
    if (known != 0) block->make_whole();  // before reserve(), whose numbers would be lost if memory is exhausted
    const EntryIndex::Place place = index_ != nullptr ? index_->reserve() : EntryIndex::Place{known * kBlockEntries, 1};
    block->number(place.first_index, known * kBlockEntries, place.generation);
    if (index_ != nullptr) index_->publish(place, *block);
    if (known == 0) first_ = block.get();
    segments_[segment][known + 1 - size] = std::move(block);
    note_open(known);
    count_.store(known + 1, std::memory_order_release);  // pairs with count()
  }

  // Must be called while no other thread uses the pool. Returns the number of entries that are not vacant.
  std::uint32_t audit(AuditReport& report) const {
    std::uint32_t used = 0;
    for (std::uint32_t number = 0; number < count(); ++number) {
      Block<T>& block = at(number);
      const std::uint64_t vacant = block.vacant().read();
      used += static_cast<std::uint32_t>(std::popcount(block.taken()));
      report.expect(vacant == 0 || (open(number).read() & bit(number)) != 0, "a block with vacant entries is not open");
      report.equal("the first place of a block", block.first_place(), number * kBlockEntries);
      for (std::uint64_t bits = vacant; bits != 0; bits &= bits - 1) {
        const EntryWord word(block.entry(SearchOrder::pick(bits)).word.load(std::memory_order_relaxed));
        report.expect(word.vacant() && !word.reserved(), "an entry in use is marked vacant");
      }
    }
    return used;
  }

 private:
  static constexpr std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << (number % kBlocksOfAWord); }
  // Returns the map of the 64 blocks around `number`: a set bit marks a block with vacant entries.
  Bitmap& open(std::uint32_t number) {
    return number < kBlocksOfAWord ? open_ : at(number / kBlocksOfAWord * kBlocksOfAWord).open();
  }
  const Bitmap& open(std::uint32_t number) const {
    return number < kBlocksOfAWord ? open_ : at(number / kBlocksOfAWord * kBlocksOfAWord).open();
  }
  void note_open(std::uint32_t number) {
    if ((open(number).read() & bit(number)) == 0) open(number).set(bit(number));
  }
  // The block was full. give_back() sets the entry's bit, then reads this map; here the map is cleared, then the
  // entries' bits are read. One of the two sees the other.
  void leave_open(std::uint32_t number) {
    open(number).clear(bit(number));
    if (at(number).vacant().read() != 0) note_open(number);
  }
  Entry<T>* claim_in(std::uint32_t number) {
    Block<T>& block = at(number);
    for (std::uint64_t bits = block.vacant().read(); bits != 0; bits &= bits - 1) {
      Entry<T>& entry = block.entry(static_cast<unsigned>(std::countr_zero(bits)));
      if (block.vacant().claim(entry.bit())) return &entry;
    }
    return nullptr;
  }

  static constexpr unsigned kSegments = 26;  // a cap has 31 bits, a block has 64 entries

  const unsigned loops_;
  EntryIndex* const index_;
  Atomic<std::uint32_t> count_{0};
  Block<T>* first_ = nullptr;
  Bitmap open_;
  // The n-th segment has 2^n blocks. Not atomic: an element is written before the count that covers it.
  std::array<std::unique_ptr<std::unique_ptr<Block<T>>[]>, kSegments> segments_;
  Mutex growing_;
};

}  // namespace carpool::pool
