#include "metrics/histogram.h"

#include <numeric>

namespace carpool::metrics {

std::uint64_t HistogramTotals::count() const {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

HistogramTotals& HistogramTotals::operator+=(const HistogramTotals& other) {
  bounds = other.bounds;
  for (std::size_t i = 0; i < kBuckets; ++i) buckets[i] += other.buckets[i];
  nanoseconds += other.nanoseconds;
  return *this;
}

HistogramTotals Histogram::read() const {
  HistogramTotals totals;
  for (std::size_t i = 0; i < kBuckets; ++i) totals.buckets[i] = buckets_[i].read();
  totals.nanoseconds = nanoseconds_.read();
  return totals;
}

}  // namespace carpool::metrics
