// TrimPolicy: decides when free memory is worth returning. Pure. A large amount is returned after it was unused for a
// while, or at once when memory is short; a small amount only when memory use no longer changes, so that an idle
// process holds little more than it needs. Memory that the last trim could not return (partly free pages, stacks), or
// that was free at the start, is ignored.
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

  // The pause after a sample that took `cpu` of processor time. A busy machine makes a sample late, not costly, so
  // waiting for a processor must not be part of `cpu`.
  static constexpr Duration pause_after(Duration cpu) {
    constexpr Duration kShortest = std::chrono::seconds(1), kLongest = std::chrono::seconds(30);
    constexpr int kShare = 1000;
    return std::clamp(kShare * cpu, kShortest, kLongest);
  }

  // Takes a sample of resident unused bytes; returns true if they should be returned now.
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
  // Must be called after a trim; `unused` bytes are left.
  void done(std::uint64_t unused) {
    kept_ = unused;
    much_since_ = still_since_ = kNever;
  }

 private:
  std::uint64_t kept_ = UINT64_MAX;  // lowest value since the last trim, which cannot be returned
  std::uint64_t last_ = 0;           // `unused` when it last changed
  Instant much_since_ = kNever;      // every sample since then was large
  Instant still_since_ = kNever;     // no change since then
};

}  // namespace carpool::proxy
