// Capacity: the cap of a pool and its use in one word, so that reservations, changes of the cap and termination are
// totally ordered.
#pragma once

#include <atomic>
#include <cstdint>

#include "pool/atomic.h"

namespace carpool::pool {

// terminated 1 | cap 31 | in use 32
class CapacityWord {
 public:
  static constexpr std::uint64_t kTerminated = std::uint64_t{1} << 63;
  constexpr explicit CapacityWord(std::uint64_t bits) : bits_(bits) {}
  constexpr std::uint64_t bits() const { return bits_; }
  constexpr std::uint32_t in_use() const { return static_cast<std::uint32_t>(bits_); }
  constexpr std::uint32_t cap() const { return static_cast<std::uint32_t>((bits_ & ~kTerminated) >> 32); }
  constexpr bool terminated() const { return (bits_ & kTerminated) != 0; }
  constexpr bool full() const { return in_use() >= cap(); }
  constexpr CapacityWord cap(std::uint32_t cap) const {
    const std::uint64_t mine = std::uint64_t{cap} << 32 & ~kTerminated;
    return CapacityWord((bits_ & (kTerminated | std::uint64_t{0xFFFFFFFF})) | mine);
  }

 private:
  std::uint64_t bits_;
};

class Capacity {
 public:
  explicit Capacity(std::uint32_t cap) : word_(CapacityWord(0).cap(cap).bits()) {}

  CapacityWord now(std::memory_order order = std::memory_order_seq_cst) const {
    return CapacityWord(word_.load(order));
  }

  // Counts one more. Returns false if the pool is full or terminated.
  bool acquire() {
    // seq_cst on each read: acquire(), release(), terminate() and cap() agree on an order. An old word would refuse a
    // place that is free.
    CapacityWord seen = now();
    std::uint64_t bits = seen.bits();
    do {
      seen = CapacityWord(bits);
      if (seen.terminated() || seen.full()) return false;
    } while (!word_.compare_exchange_weak(bits, bits + 1, std::memory_order_seq_cst, std::memory_order_seq_cst));
    return true;
  }
  void release() { word_.fetch_sub(1, std::memory_order_seq_cst); }

  // A cap below the current use blocks acquire() until use has fallen.
  void cap(std::uint32_t cap) {
    std::uint64_t bits = now(std::memory_order_relaxed).bits();
    // seq_cst: a thread that lowers the cap and then reads in_use() agrees with acquire() on the order.
    while (!word_.compare_exchange_weak(bits, CapacityWord(bits).cap(cap).bits(), std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
    }
  }
  // Returns true for the first caller.
  bool terminate() {
    return !CapacityWord(word_.fetch_or(CapacityWord::kTerminated, std::memory_order_seq_cst)).terminated();
  }

 private:
  Atomic<std::uint64_t> word_;
};

}  // namespace carpool::pool
