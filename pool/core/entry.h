// Entry, Block: the elements of a pool, stored in blocks of 64 (pool/core/blocks.h). Each block keeps bitmaps of its
// vacant entries and, per home loop, of its available ones, so that a search reads only those, its own loop's first.
// A block allocates its entries in parts of four: an entry of a destination takes 256 bytes, most origins use few.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/loop_id.h"
#include "pool/atomic.h"
#include "pool/core/entry_state.h"

namespace carpool::pool {

inline constexpr unsigned kBlockEntries = 64;
inline constexpr unsigned kPartEntries = 4;
inline constexpr unsigned kBlocksOfAWord = 64;

// The number of concurrent borrowers of an entry, and whether borrowing it moves it to the borrower's loop.
struct Multiplexing {
  std::uint32_t max_users = 1;
  bool pinned = false;  // the entry stays on its home loop

  static constexpr std::uint32_t kPinned = std::uint32_t{1} << 31;
  constexpr std::uint32_t bits() const { return max_users | (pinned ? kPinned : 0); }
  static constexpr Multiplexing of(std::uint32_t bits) { return {bits & ~kPinned, (bits & kPinned) != 0}; }
};

struct EntryBase {
  AtomicWord word{0};
  Atomic<std::uint32_t> multiplexing_bits{1};
  std::uint32_t index = 0;  // process-wide, or within the pool when the entry is in no EntryIndex

  // relaxed: `pinned` is written while the entry is reserved, so the word orders it: a reader of an older value loses
  // its CAS. `max_users` may change at any time; a reader of the old limit exceeds or misses the new one at most once.
  Multiplexing multiplexing() const { return Multiplexing::of(multiplexing_bits.load(std::memory_order_relaxed)); }
};

// The part of a block that does not depend on the type of its objects.
class BlockBase {
 public:
  // Returns null if the entry does not exist yet.
  virtual EntryBase* find(unsigned place) = 0;

 protected:
  BlockBase() = default;
  BlockBase(const BlockBase&) = delete;
  BlockBase& operator=(const BlockBase&) = delete;
  ~BlockBase() = default;
};

template <class T>
class Block;

template <class T>
struct alignas(kCacheLine) Entry : EntryBase {
  Block<T>* block = nullptr;
  T value{};

  std::uint64_t bit() const { return std::uint64_t{1} << (index % kBlockEntries); }
  std::uint32_t place() const;  // position in its pool, from 0
};

struct alignas(kCacheLine) Bitmap {
  Atomic<std::uint64_t> bits{0};

  // seq_cst on all: a release publishes an available entry, then reads `waiting`; a borrower publishes `waiting`, then
  // reads the map. An RMW is a full barrier on x86 anyway.
  void set(std::uint64_t bit) { bits.fetch_or(bit, std::memory_order_seq_cst); }
  void clear(std::uint64_t bit) { bits.fetch_and(~bit, std::memory_order_seq_cst); }
  std::uint64_t read() const { return bits.load(std::memory_order_seq_cst); }
  // Returns true for the thread that cleared it.
  bool claim(std::uint64_t bit) { return (bits.fetch_and(~bit, std::memory_order_seq_cst) & bit) != 0; }
};

template <class T>
class Block final : public BlockBase {
 public:
  // `leads`: the block keeps the maps of itself and the 63 blocks after it.
  explicit Block(unsigned loops, bool leads = false)
      : idle_(std::make_unique<Bitmap[]>(loops)),
        loops_(loops),
        led_(leads ? std::make_unique<Bitmap[]>(loops + 1) : nullptr) {
    parts_[0].store(std::make_unique<Part>().release(), std::memory_order_relaxed);  // so that number() cannot fail
  }

  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    for (auto& part : parts_) const std::unique_ptr<Part> dies(part.load(std::memory_order_relaxed));
  }

  // Allocates all entries. May be called before number(). Throws std::bad_alloc; the block has fewer entries then.
  void make_whole() {
    for (auto& part : parts_) {
      if (part.load(std::memory_order_relaxed) != nullptr) continue;
      part.store(std::make_unique<Part>().release(), std::memory_order_relaxed);  // owned by parts_ until ~Block
    }
  }
  // Must be called once, before the block is published: the entries that it has are vacant then.
  void number(std::uint32_t first_index, std::uint32_t first_place, std::uint32_t generation) {
    first_index_ = first_index;
    first_place_ = first_place;
    generation_ = generation;
    for (const auto& part : parts_) {
      if (Part* made = part.load(std::memory_order_relaxed)) list(made);
    }
  }
  // Adds vacant entries. Returns false if the block has all of its entries. One thread at a time. Throws
  // std::bad_alloc; nothing changes then.
  bool extend() {
    if (parts_made_ == kParts) return false;
    list(std::make_unique<Part>().release());  // owned by parts_ until ~Block
    return true;
  }

  // acquire: pairs with extend(); the entry is complete.
  Entry<T>* find(unsigned place) override {
    Part* part = parts_[place / kPartEntries].load(std::memory_order_acquire);
    return part == nullptr ? nullptr : &part->entries[place % kPartEntries];
  }
  // Returns an entry that exists: the caller read its bit or its word. relaxed: what it read orders it.
  Entry<T>& entry(unsigned place) {
    return parts_[place / kPartEntries].load(std::memory_order_relaxed)->entries[place % kPartEntries];
  }
  Bitmap& idle(LoopId loop) { return idle_[loop]; }
  Bitmap& vacant() { return vacant_; }
  // In a leading block: its blocks with available entries on a loop (pool/core/filled_blocks.h), or with vacant ones.
  Bitmap& filled(LoopId loop) { return led_[loop]; }
  Bitmap& open() { return led_[loops_]; }
  std::uint32_t first_place() const { return first_place_; }
  // Returns the entries that are not marked vacant. For audits: no thread may extend the block meanwhile.
  std::uint64_t taken() const {
    const unsigned made = parts_made_ * kPartEntries;
    return ~vacant_.read() & (made == kBlockEntries ? ~std::uint64_t{0} : (std::uint64_t{1} << made) - 1);
  }
  // Returns the entries that any loop's map lists as available.
  std::uint64_t idle_anywhere() const {
    std::uint64_t bits = 0;
    for (unsigned loop = 0; loop < loops_; ++loop) bits |= idle_[loop].read();
    return bits;
  }

 private:
  struct Part {
    std::array<Entry<T>, kPartEntries> entries;
  };
  static constexpr unsigned kParts = kBlockEntries / kPartEntries;

  void list(Part* part) {
    const unsigned first = parts_made_ * kPartEntries;
    for (unsigned n = 0; n < kPartEntries; ++n) {
      Entry<T>& entry = part->entries[n];
      entry.index = first_index_ + first + n;
      entry.block = this;
      entry.word.store(EntryWord::vacant(generation_).bits(), std::memory_order_relaxed);
    }
    parts_[parts_made_++].store(part, std::memory_order_release);  // pairs with find()
    vacant_.set(((std::uint64_t{1} << kPartEntries) - 1) << first);
  }

  // First, next to each other: every borrow reads them.
  std::unique_ptr<Bitmap[]> idle_;
  const unsigned loops_;
  std::uint32_t first_place_ = 0;
  Bitmap vacant_;
  std::unique_ptr<Bitmap[]> led_;
  std::uint32_t first_index_ = 0, generation_ = 0;
  unsigned parts_made_ = 0;
  std::array<Atomic<Part*>, kParts> parts_{};
};

template <class T>
std::uint32_t Entry<T>::place() const {
  return block->first_place() + index % kBlockEntries;
}

}  // namespace carpool::pool
