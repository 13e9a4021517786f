// A serializer for text 0.0.4 whose output equals prometheus-cpp's, byte for byte, in a fifth of the time
// (docs/decisions/0013): one string instead of a stream, labels escaped once per histogram, whole numbers formatted as
// integers.
#pragma once

#include <prometheus/metric_family.h>

#include <string>

namespace carpool::metrics {

// Append HELP and TYPE, once, then the samples, all or some at a time.
void append_heading(std::string& out, const prometheus::MetricFamily& family);
void append_samples(std::string& out, const prometheus::MetricFamily& family);

}  // namespace carpool::metrics
