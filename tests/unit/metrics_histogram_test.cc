// Unit tests of Histogram: buckets by bit width match a linear search at every boundary.
#include "metrics/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace carpool::metrics {
namespace {

std::size_t plain_search(std::uint64_t ns) {
  return static_cast<std::size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), ns) - kBounds.begin());
}

TEST(Histogram, PutsAValueEqualToABoundUnderIt) {
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    EXPECT_EQ(bucket_of(kBounds[i]), i);
    EXPECT_EQ(bucket_of(kBounds[i] + 1), i + 1);
    EXPECT_EQ(bucket_of(kBounds[i] - 1), i);
  }
}

TEST(Histogram, AgreesWithAPlainSearchForAnyValue) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t ns = random() >> (random() % 64);
    ASSERT_EQ(bucket_of(ns), plain_search(ns)) << ns;
  }
  EXPECT_EQ(bucket_of(0), 0U);
  EXPECT_EQ(bucket_of(~std::uint64_t{0}), kBounds.size());
}

TEST(Histogram, CountsAndSumsWhatItSaw) {
  Histogram histogram;
  histogram.observe(std::chrono::microseconds(50));
  histogram.observe(std::chrono::milliseconds(2));
  histogram.observe(std::chrono::minutes(5));
  const HistogramTotals totals = histogram.read();
  EXPECT_EQ(totals.count(), 3U);
  EXPECT_EQ(totals.nanoseconds, 300'002'050'000U);
  EXPECT_EQ(totals.buckets[0], 1U);
  EXPECT_EQ(totals.buckets[4], 1U);
  EXPECT_EQ(totals.buckets[kBounds.size()], 1U);
}

TEST(Histogram, TakesATimeThatRanBackwardsAsNone) {
  Histogram histogram;
  histogram.observe(std::chrono::nanoseconds(-5));
  EXPECT_EQ(histogram.read().buckets[0], 1U);
  EXPECT_EQ(histogram.read().nanoseconds, 0U);
}

TEST(Histogram, AddsTheTotalsOfTwo) {
  Histogram one, two;
  one.observe(std::chrono::milliseconds(1));
  two.observe(std::chrono::milliseconds(1));
  HistogramTotals sum = one.read();
  sum += two.read();
  EXPECT_EQ(sum.buckets[3], 2U);
  EXPECT_EQ(sum.nanoseconds, 2'000'000U);
}

}  // namespace
}  // namespace carpool::metrics
