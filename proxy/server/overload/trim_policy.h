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
  static constexpr std::uint64_t kKiB = 1024, kLarge = 4096 * kKiB, kSmall = 256 * kKiB, kChange = 64 * kKiB;  // bytes
  static constexpr Duration kIdle = std::chrono::seconds(3), kStable = std::chrono::seconds(5);

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
    large_since_ = worth < kLarge ? kNever : std::min(large_since_, now);
    if (unused > last_ + kChange || last_ > unused + kChange || stable_since_ == kNever) {
      last_ = unused;
      stable_since_ = now;
    }
    if (worth >= kLarge && (memory_is_short || now - large_since_ >= kIdle)) return true;
    return worth >= kSmall && now - stable_since_ >= kStable;
  }
  // Must be called after a trim; `unused` bytes are left.
  void done(std::uint64_t unused) {
    kept_ = unused;
    large_since_ = stable_since_ = kNever;
  }

 private:
  std::uint64_t kept_ = UINT64_MAX;  // lowest value since the last trim, which cannot be returned
  std::uint64_t last_ = 0;           // `unused` when it last changed
  Instant large_since_ = kNever;     // every sample since then was large
  Instant stable_since_ = kNever;    // no change since then
};

}  // namespace carpool::proxy
