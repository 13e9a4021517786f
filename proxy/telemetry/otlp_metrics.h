// The metrics of a scrape in the encoding of OTLP (metrics.proto): counters as monotonic sums, gauges, and histograms.
// All are cumulative since the start of the process and have the names of /metrics.
#pragma once

#include <cstdint>
#include <string>

#include "metrics/families.h"

namespace carpool::proxy::otlp {

// MetricTimes: nanoseconds since 1970.
struct MetricTimes {
  std::uint64_t start = 0;  // start of the process
  std::uint64_t now = 0;
};

// Returns ScopeMetrics.metrics, one per family. Takes some milliseconds for thousands of series, so it must not run on
// a loop.
std::string encode_metrics(metrics::Families families, const MetricTimes& times);

}  // namespace carpool::proxy::otlp
