// prometheus-cpp's serializer of text 0.0.4 once more, byte for byte, in a fifth of the time (docs/decisions/0013):
// into one string instead of a stream, labels escaped once for all buckets of a histogram, whole numbers written as
// such.
#pragma once

#include <prometheus/metric_family.h>

#include <string>

namespace carpool::metrics {

// HELP and TYPE, once; then the samples, all or some at a time.
void append_heading(std::string& out, const prometheus::MetricFamily& family);
void append_samples(std::string& out, const prometheus::MetricFamily& family);

}  // namespace carpool::metrics
