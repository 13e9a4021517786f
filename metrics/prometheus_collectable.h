// PrometheusCollectable: a scrape for prometheus-cpp's Exposer, or any other collector of a program that links
// carpool's libraries. carpool itself serves Exposition, whose memory is bounded by a part of the scrape.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics {

// The data of a scrape that the registry does not have.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual Sample sample() const = 0;  // any thread
};

// The registry and the source must outlive it. Takes some milliseconds for thousands of series: do not collect on a
// loop that serves requests.
class PrometheusCollectable final : public prometheus::Collectable {
 public:
  PrometheusCollectable(const Registry& registry, const SampleSource& source) : registry_(registry), source_(source) {}
  std::vector<prometheus::MetricFamily> Collect() const override;  // any thread

 private:
  const Registry& registry_;
  const SampleSource& source_;
};

}  // namespace carpool::metrics
