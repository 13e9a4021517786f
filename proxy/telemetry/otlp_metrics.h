// The metrics of a scrape in the encoding of OTLP (metrics.proto): counters as monotonic sums, gauges, histograms; all
// cumulative since the start of the process, and named as in /metrics.
#pragma once

#include <cstdint>
#include <string>

#include "metrics/families.h"

namespace carpool::proxy::otlp {

// Since 1970, in nanoseconds.
struct MetricTimes {
  std::uint64_t start = 0;  // of the process
  std::uint64_t now = 0;
};

// Returns ScopeMetrics.metrics, one for each family. Takes some milliseconds for thousands of series: not for a loop.
std::string encode_metrics(metrics::Families families, const MetricTimes& times);

}  // namespace carpool::proxy::otlp
