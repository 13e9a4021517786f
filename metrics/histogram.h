// Histogram: durations in fixed buckets from 100 us to 60 s. One writer, any number of readers; about 2 ns per value.
//
// Adjacent bounds differ at least by a factor of two, so each power of two contains at most one: the bit width of the
// value gives the bucket up to one comparison. No search, no floating point.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "metrics/counter.h"

namespace carpool::metrics {

// Upper bounds (inclusive), in nanoseconds.
inline constexpr std::array<std::uint64_t, 18> kBounds{
    100'000,       250'000,       500'000,       1'000'000,      2'500'000,      5'000'000,
    10'000'000,    25'000'000,    50'000'000,    100'000'000,    250'000'000,    500'000'000,
    1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000, 60'000'000'000};
inline constexpr std::size_t kBuckets = kBounds.size() + 1;  // the last one: above every bound

namespace detail {
constexpr bool bounds_are_apart() {
  for (std::size_t i = 1; i < kBounds.size(); ++i) {
    if (kBounds[i] < 2 * kBounds[i - 1]) return false;
  }
  return true;
}
static_assert(bounds_are_apart());

// Index of the first bound that a value of this bit width may not exceed.
constexpr auto first_bounds() {
  std::array<std::uint8_t, 65> first{};
  for (std::size_t bits = 1; bits <= 64; ++bits) {
    const std::uint64_t least = std::uint64_t{1} << (bits - 1);
    while (first[bits] < kBounds.size() && kBounds[first[bits]] < least) ++first[bits];
  }
  return first;
}
inline constexpr auto kFirst = first_bounds();
}  // namespace detail

constexpr std::size_t bucket_of(std::uint64_t nanoseconds) {
  const std::size_t i = detail::kFirst[static_cast<std::size_t>(std::bit_width(nanoseconds))];
  return i + (i < kBounds.size() && nanoseconds > kBounds[i] ? 1 : 0);
}

// The bounds of ages and idle times of connections: up to two hours.
inline constexpr std::array<std::uint64_t, 8> kAgeBounds{100'000'000,       1'000'000'000,    5'000'000'000,
                                                         15'000'000'000,    60'000'000'000,   300'000'000'000,
                                                         1'800'000'000'000, 7'200'000'000'000};

// Totals for a reader: not cumulative; the count is the sum of the buckets, so they always agree.
struct HistogramTotals {
  std::span<const std::uint64_t> bounds = kBounds;
  std::array<std::uint64_t, kBuckets> buckets{};  // the first bounds.size() + 1 are used
  std::uint64_t nanoseconds = 0;

  std::uint64_t count() const;
  HistogramTotals& operator+=(const HistogramTotals& other);
};

class Histogram {
 public:
  void observe(Duration value) {
    const auto ticks = std::chrono::duration_cast<std::chrono::nanoseconds>(value).count();
    const std::uint64_t ns = ticks > 0 ? static_cast<std::uint64_t>(ticks) : 0;
    buckets_[bucket_of(ns)].add();
    nanoseconds_.add(ns);
  }
  HistogramTotals read() const;

 private:
  std::array<Cell, kBuckets> buckets_;
  Cell nanoseconds_;
};

}  // namespace carpool::metrics
