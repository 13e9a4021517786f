// SizeChange: one change of a size that follows the load, with its evidence. SizeHistory: the number of changes by
// reason, and the last few.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace carpool::pool {

enum class SizeReason : std::uint8_t { waits, latency, restored, refused, dials };
inline constexpr std::array<std::string_view, 5> kSizeReasons{"waits", "latency", "restored", "refused", "dials"};
constexpr std::string_view name(SizeReason reason) {
  return kSizeReasons[static_cast<std::size_t>(reason)];
}

// The measurements between two calls of update().
struct LoadSample {
  std::uint64_t responses = 0;      // without those that count as refused
  Duration median{};                // of the times from the lease to the head of the response
  std::uint64_t refused = 0;        // 429, 503, or no response in time
  std::uint64_t dials_refused = 0;  // by the origin
  std::uint64_t late = 0;           // requests that waited for longer than tolerable_wait(), or found the queue full
  bool at_size = false;             // a request needed a connection, or a tunnel a place, that the size did not permit
  bool all_answered = false;        // neither a request nor a dial is unanswered: only tunnels use connections
  std::uint32_t open = 0;           // established connections
  std::uint32_t busy = 0;           // of them, the most that were lent at once
};

struct SizeChange {
  Instant when{};
  std::uint32_t from = 0, to = 0;
  SizeReason reason = SizeReason::waits;
  LoadSample seen;    // the evidence
  Duration lowest{};  // the lowest median
};

class SizeHistory {
 public:
  static constexpr std::size_t kKept = 8;

  void add(const SizeChange& change) {
    last_[next_++ % kKept] = change;
    ++counts_[static_cast<std::size_t>(change.reason)];
  }
  void add_counts(const SizeHistory& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  const std::array<std::uint64_t, kSizeReasons.size()>& counts() const { return counts_; }
  std::size_t size() const { return std::min<std::size_t>(next_, kKept); }
  // 0: the last one; less than size().
  const SizeChange& last(std::size_t back) const { return last_[(next_ - 1 - back) % kKept]; }

 private:
  std::array<SizeChange, kKept> last_{};
  std::array<std::uint64_t, kSizeReasons.size()> counts_{};
  std::size_t next_ = 0;
};

}  // namespace carpool::pool
