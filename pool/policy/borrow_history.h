// BorrowHistory: the last few thousand borrows of one loop at one destination: when they came, how long they waited and
// held. Times only, no payload. One writer, read by anyone at any time. Memory is bounded, and grows only where borrows
// come so fast that what there is would hold less than the last kSpan of them: a thousand quiet origins keep a chunk
// each.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.h"

namespace carpool::pool {

// One borrow, over.
struct BorrowRecord {
  Instant arrived{};
  Duration waited{}, held{};
};

class BorrowHistory {
 public:
  static constexpr std::size_t kChunk = 256, kChunks = 16;
  static constexpr std::size_t kMost = kChunk * kChunks;
  static constexpr Duration kSpan = std::chrono::seconds(10);

  BorrowHistory() = default;
  BorrowHistory(const BorrowHistory&) = delete;
  BorrowHistory& operator=(const BorrowHistory&) = delete;
  ~BorrowHistory() {
    for (auto& chunk : chunks_) const std::unique_ptr<Slot[]> dies(chunk.load(std::memory_order_relaxed));
  }

  // On the loop's thread.
  void note(Instant arrived, Duration waited, Duration held) {
    if (next_ == size_) turn_over(arrived);
    Slot* const place = at(next_);
    if (place == nullptr) return;  // no memory: not noted
    Slot& slot = *place;
    ++next_;
    // release: pairs with the acquires in read(), which takes a slot only if `when` was the same before and after.
    slot.when.store(0, std::memory_order_release);
    slot.how.store(std::uint64_t{micros(waited)} << 32 | micros(held), std::memory_order_release);
    slot.when.store(static_cast<std::uint64_t>(arrived.time_since_epoch().count()), std::memory_order_release);
  }

  // Any thread; in no order. What is being written at that moment is left out.
  void read(std::vector<BorrowRecord>& into) const {
    for (const auto& chunk : chunks_) {
      const Slot* slots = chunk.load(std::memory_order_acquire);  // pairs with place()
      if (slots == nullptr) return;
      for (std::size_t i = 0; i < kChunk; ++i) {
        const std::uint64_t when = slots[i].when.load(std::memory_order_acquire);
        const std::uint64_t how = slots[i].how.load(std::memory_order_acquire);
        if (when == 0 || slots[i].when.load(std::memory_order_acquire) != when) continue;
        into.push_back({Instant(Duration(static_cast<Duration::rep>(when))), std::chrono::microseconds(how >> 32),
                        std::chrono::microseconds(how & 0xFFFFFFFFU)});
      }
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> when{0}, how{0};
  };
  // The end of the ring: from the beginning again, or, where its first one is young, into one chunk more.
  void turn_over(Instant now) {
    const auto first = static_cast<Duration::rep>(at(0)->when.load(std::memory_order_relaxed));  // this thread's
    if (size_ < kMost && now - Instant(Duration(first)) < kSpan) {
      size_ += kChunk;
    } else {
      next_ = 0;
    }
  }
  // Null: no memory for it.
  Slot* at(std::size_t number) {
    auto& chunk = chunks_[number / kChunk];
    Slot* slots = chunk.load(std::memory_order_relaxed);  // this thread wrote it
    if (slots == nullptr) {
      slots = new_chunk().release();                  // the chain's until ~History
      chunk.store(slots, std::memory_order_release);  // pairs with read()
    }
    return slots == nullptr ? nullptr : &slots[number % kChunk];
  }
  static std::unique_ptr<Slot[]> new_chunk() {
    try {
      return std::make_unique<Slot[]>(kChunk);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  // Saturates at 71 minutes.
  static std::uint32_t micros(Duration time) {
    const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, 0xFFFFFFFF));
  }

  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::size_t next_ = 0, size_ = kChunk;  // of the ring, as large as it is now
};

}  // namespace carpool::pool
