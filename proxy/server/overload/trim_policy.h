// TrimPolicy: when free memory is worth giving back. Pure. Much of it once it has lain idle for a while, at once where
// memory is short; little of it only when nothing moves any more, so that who is at rest holds what it needs. What the
// last time could not give back (pages that are free in part, stacks) and what the start left is left alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace carpool::proxy {

class TrimPolicy {
 public:
  static constexpr std::uint64_t kKiB = 1024, kMuch = 4096 * kKiB, kLittle = 256 * kKiB, kMoves = 64 * kKiB;  // bytes
  static constexpr Duration kIdle = std::chrono::seconds(3), kStill = std::chrono::seconds(5);

  // One look at the bytes that are resident and unused. True: give them back now.
  bool sample(std::uint64_t unused, bool memory_is_short, Instant now) {
    kept_ = std::min(kept_, unused);
    const std::uint64_t worth = unused - kept_;
    much_since_ = worth < kMuch ? kNever : std::min(much_since_, now);
    if (unused > last_ + kMoves || last_ > unused + kMoves || still_since_ == kNever) {
      last_ = unused;
      still_since_ = now;
    }
    if (worth >= kMuch && (memory_is_short || now - much_since_ >= kIdle)) return true;
    return worth >= kLittle && now - still_since_ >= kStill;
  }
  // It was done; `unused` are left.
  void done(std::uint64_t unused) {
    kept_ = unused;
    much_since_ = still_since_ = kNever;
  }

 private:
  std::uint64_t kept_ = UINT64_MAX;  // that the first look saw, or the last time left
  std::uint64_t last_ = 0;           // unused, when it last moved
  Instant much_since_ = kNever;      // since then there was much at each look
  Instant still_since_ = kNever;     // since then nothing moved
};

}  // namespace carpool::proxy
