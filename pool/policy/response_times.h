// ResponseTimes: one loop's counts of an origin's responses and of waits, for SizeController. One writer, any number of
// readers at any time. Times are in buckets whose width is a sixteenth of their value.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/loop_id.h"

namespace carpool::pool {

// The counts of all loops; the difference of two is the count in between.
struct ResponseCounts {
  static constexpr std::size_t kParts = 16, kBuckets = kParts * 24;  // up to 134 s; longer ones are in the last

  std::array<std::uint32_t, kBuckets> times{};
  std::uint32_t refused = 0, late = 0;

  static std::size_t bucket_of(Duration time) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    const auto value = static_cast<std::uint64_t>(std::clamp<std::int64_t>(micros, 0, (1 << 26) + (1 << 26) - 1));
    if (value < kParts) return static_cast<std::size_t>(value);
    const auto octave = static_cast<unsigned>(std::bit_width(value)) - 1;  // 4 at least
    return (octave - 3) * kParts + (value >> (octave - 4)) % kParts;
  }
  // Returns the middle of the bucket.
  static Duration time_of(std::size_t bucket) {
    if (bucket < kParts) return std::chrono::microseconds(bucket);
    const std::size_t octave = bucket / kParts + 3;
    const std::uint64_t width = std::uint64_t{1} << (octave - 4);
    return std::chrono::nanoseconds(((bucket % kParts + kParts) * width * 2 + width) * 500);
  }

  ResponseCounts since(const ResponseCounts& before) const {
    ResponseCounts passed;
    // Each count wraps around by itself.
    for (std::size_t i = 0; i < kBuckets; ++i) passed.times[i] = times[i] - before.times[i];
    passed.refused = refused - before.refused;
    passed.late = late - before.late;
    return passed;
  }
  std::uint64_t responses() const {
    std::uint64_t sum = 0;
    for (const std::uint32_t count : times) sum += count;
    return sum;
  }
  // Returns zero without responses.
  Duration median() const {
    const std::uint64_t all = responses();
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      below += times[i];
      if (below * 2 >= all && below != 0) return time_of(i);
    }
    return Duration::zero();
  }
};

class ResponseTimes {
 public:
  ResponseTimes() = default;
  ResponseTimes(const ResponseTimes&) = delete;
  ResponseTimes& operator=(const ResponseTimes&) = delete;

  // Must be called on the loop's thread.
  void answered(Duration time) { add(times_[ResponseCounts::bucket_of(time)]); }
  void refused() { add(refused_); }
  void late() { add(late_); }

  void read(ResponseCounts& into) const {
    // relaxed: counts that publish nothing.
    for (std::size_t i = 0; i < times_.size(); ++i) into.times[i] += times_[i].load(std::memory_order_relaxed);
    into.refused += refused_.load(std::memory_order_relaxed);
    into.late += late_.load(std::memory_order_relaxed);
  }

 private:
  using Count = std::atomic<std::uint32_t>;
  static void add(Count& count) { count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  alignas(kCacheLine) std::array<Count, ResponseCounts::kBuckets> times_{};
  Count refused_{0}, late_{0};
};

}  // namespace carpool::pool
