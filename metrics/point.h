// Point: one value of a family, with its labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/histogram.h"

namespace carpool::metrics {

// The number of values from which an origin's histogram has all its buckets: fewer show no distribution, and many
// origins are rarely used. With fewer values it has its count, its sum and the bucket +Inf.
inline constexpr std::uint64_t kMinValues = 10;
// The number of connections that an origin must have had at once before it has a distribution of their times.
inline constexpr std::uint64_t kMinConnections = 2;

struct Point {
  std::vector<std::string> labels;  // values, in the order of the metric's label names
  double value = 0;
  std::unique_ptr<HistogramTotals> histogram;  // instead of value, for a histogram
  bool with_bounds = true;                     // all buckets of the histogram; false: the bucket +Inf alone
};

}  // namespace carpool::metrics
