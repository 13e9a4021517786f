// BorrowHistory: arrival, wait and hold times of the last few thousand borrows of one loop at one destination. One
// writer, any number of readers at any time. Memory is bounded: the ring grows only where it holds less than the last
// kSpan of borrows, and its parts are allocated when borrows reach them. An origin that was used a few times keeps 256
// bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.h"
#include "pool/atomic.h"

namespace carpool::pool {

// A completed borrow.
struct BorrowRecord {
  Instant arrived{};
  Duration waited{}, held{};
  std::uint16_t caller = 0;  // equal for a client's successive borrows (BorrowRequest::caller); 0: unknown
};

class BorrowHistory {
 public:
  static constexpr std::size_t kStep = 256, kMax = 16 * kStep;  // the ring grows by kStep
  static constexpr std::size_t kPart = 16;                      // the first two parts; each later one has twice as many
  static constexpr Duration kSpan = std::chrono::seconds(10);

  BorrowHistory() = default;
  BorrowHistory(const BorrowHistory&) = delete;
  BorrowHistory& operator=(const BorrowHistory&) = delete;
  ~BorrowHistory() {
    for (auto& part : parts_) const std::unique_ptr<Slot[]> dies(part.load(std::memory_order_relaxed));
  }

  // Must be called on the loop's thread.
  void note(Instant arrived, Duration waited, Duration held, std::uint16_t caller = 0) {
    if (next_ == size_) turn_over(arrived);
    Slot* const place = at(next_);
    if (place == nullptr) return;  // not recorded: out of memory
    Slot& slot = *place;
    ++next_;
    // release: pairs with the acquires in read(), which takes a slot only if `when` was the same before and after.
    slot.when.store(0, std::memory_order_release);
    slot.how.store(std::uint64_t{micros(waited)} << 32 | micros(held), std::memory_order_release);
    slot.when.store(packed(arrived, caller), std::memory_order_release);
  }

  // Appends the recorded borrows, unordered. May be called on any thread. Skips a slot that is being written.
  void read(std::vector<BorrowRecord>& into) const {
    for (std::size_t part = 0; part < kParts; ++part) {
      const Slot* slots = parts_[part].load(std::memory_order_acquire);  // pairs with at()
      if (slots == nullptr) return;
      for (std::size_t i = 0; i < length_of(part); ++i) {
        const std::uint64_t when = slots[i].when.load(std::memory_order_acquire);
        const std::uint64_t how = slots[i].how.load(std::memory_order_acquire);
        if (when == 0 || slots[i].when.load(std::memory_order_acquire) != when) continue;
        into.push_back({arrival(when), std::chrono::microseconds(how >> 32),
                        std::chrono::microseconds(how & 0xFFFFFFFFU), static_cast<std::uint16_t>(when)});
      }
    }
  }

 private:
  // when: microseconds of the steady clock, which last for nine years of uptime, and the caller.
  struct Slot {
    Atomic<std::uint64_t> when{0}, how{0};
  };
  static std::uint64_t packed(Instant arrived, std::uint16_t caller) {
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(arrived.time_since_epoch()).count();
    return static_cast<std::uint64_t>(since) << 16 | caller;
  }
  static Instant arrival(std::uint64_t when) {
    return Instant(std::chrono::microseconds(static_cast<std::int64_t>(when >> 16)));
  }
  // Called at the end of the ring: wraps around, or lets the ring grow if the first slot is younger than kSpan.
  void turn_over(Instant now) {
    const Instant first = arrival(at(0)->when.load(std::memory_order_relaxed));  // this thread's
    if (size_ < kMax && now - first < kSpan) {
      size_ += kStep;
    } else {
      next_ = 0;
    }
  }
  // Returns null if memory is exhausted.
  Slot* at(std::size_t number) {
    const auto part = static_cast<std::size_t>(std::bit_width(number / kPart));
    Slot* slots = parts_[part].load(std::memory_order_relaxed);  // this thread wrote it
    if (slots == nullptr) {
      slots = new_part(length_of(part)).release();           // owned by parts_ until ~BorrowHistory
      parts_[part].store(slots, std::memory_order_release);  // pairs with read()
    }
    return slots == nullptr ? nullptr : &slots[part == 0 ? number : number - length_of(part)];
  }
  // Part n > 0 begins at the number of slots that it has.
  static constexpr std::size_t length_of(std::size_t part) { return part == 0 ? kPart : kPart << (part - 1); }
  static std::unique_ptr<Slot[]> new_part(std::size_t length) {
    try {
      return std::make_unique<Slot[]>(length);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  // Saturates at 71 minutes.
  static std::uint32_t micros(Duration time) {
    const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, 0xFFFFFFFF));
  }

  static constexpr std::size_t kParts = std::bit_width(kMax / kPart);
  std::array<Atomic<Slot*>, kParts> parts_{};
  std::size_t next_ = 0, size_ = kStep;  // the current size of the ring
};

}  // namespace carpool::pool
