// ClassQuota: reserves a part of a pool's leases for the higher priority classes, so that these are served however busy
// the lower ones are (the Pooling pattern's sub-pools, over one pool). With n classes, class k and those below it
// together hold at most all but k/(2n), and at most all but one: with two classes the lower one leaves a quarter; the
// lowest always has at least half. A pool of one connection reserves nothing. Class 0, the highest, is limited by the
// cap alone and never counted.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "pool/atomic.h"

namespace carpool::pool {

class ClassQuota {
 public:
  static constexpr unsigned kMaxClasses = 4;

  // `whole`: the leases that the pool can give at once. Fewer than two classes: no limits.
  void set(unsigned classes, std::uint64_t whole) {
    std::uint64_t limits = 0;
    for (unsigned level = 1; level < kMaxClasses; ++level) {
      const bool limited = level < classes;
      const std::uint64_t least = whole > 1 ? 1 : 0;
      const std::uint64_t share =
          limited ? whole - std::max(whole * level / (std::uint64_t{2} * classes), least) : kField;
      limits |= std::min(share, kField) << shift(level);
    }
    limits_.store(limits, std::memory_order_relaxed);  // relaxed: a reader of the old limit is served by the next pass
    limited_.store(classes > 1, std::memory_order_relaxed);
  }

  // Counts one lease of class `of`. Returns false if it or a class above it has used its share. Any thread.
  bool acquire(unsigned of) {
    if (of == 0) return true;
    // seq_cst: pairs with release(): a borrower that was enqueued (attention) and fails here is seen by the thread that
    // releases.
    std::uint64_t held = held_.load(std::memory_order_seq_cst);
    do {
      if (room(held, of) == 0) return false;
    } while (!held_.compare_exchange_weak(held, held + unit(of), std::memory_order_seq_cst, std::memory_order_seq_cst));
    return true;
  }
  // The caller must serve the waiters afterwards.
  void release(unsigned of) {
    if (of != 0) held_.fetch_sub(unit(of), std::memory_order_seq_cst);
  }

  bool limited() const { return limited_.load(std::memory_order_relaxed); }
  // Leases of class `level` and below: current and maximum.
  std::uint64_t held(unsigned level) const { return field(held_.load(std::memory_order_relaxed), level); }
  std::uint64_t limit(unsigned level) const { return field(limits_.load(std::memory_order_relaxed), level); }

  // Returns how many of the waiters, by class, must wait for their share whatever is dialed for them.
  std::uint32_t held_back(const std::array<std::uint32_t, kMaxClasses>& waiting) const {
    const std::uint64_t held = held_.load(std::memory_order_seq_cst);
    std::uint64_t all = 0, served = 0;
    for (unsigned level = kMaxClasses - 1; level != 0; --level) {
      all += waiting[level];
      served = std::min(served + waiting[level], left(held, level));
    }
    return static_cast<std::uint32_t>(all - served);
  }

 private:
  static constexpr unsigned kBits = 21;  // one field per class except the highest
  static constexpr std::uint64_t kField = (std::uint64_t{1} << kBits) - 1;
  static constexpr unsigned shift(unsigned level) { return kBits * (level - 1); }
  static constexpr std::uint64_t field(std::uint64_t word, unsigned level) { return word >> shift(level) & kField; }
  // A lease of a class counts for it and for all above it except the highest.
  static constexpr std::uint64_t unit(unsigned of) {
    std::uint64_t word = 0;
    for (unsigned level = 1; level <= of; ++level) word |= std::uint64_t{1} << shift(level);
    return word;
  }
  std::uint64_t left(std::uint64_t held, unsigned level) const {
    const std::uint64_t now = field(held, level), top = limit(level);
    return now < top ? top - now : 0;
  }
  std::uint64_t room(std::uint64_t held, unsigned of) const {
    std::uint64_t least = kField;
    for (unsigned level = 1; level <= of; ++level) least = std::min(least, left(held, level));
    return least;
  }

  Atomic<std::uint64_t> held_{0};
  std::atomic<std::uint64_t> limits_{UINT64_MAX};
  std::atomic<bool> limited_{false};
};

}  // namespace carpool::pool
