#include "metrics/prometheus_model.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::metrics {
namespace {

prometheus::MetricType type_of(Type type) {
  switch (type) {
    case Type::counter:
      return prometheus::MetricType::Counter;
    case Type::gauge:
      return prometheus::MetricType::Gauge;
    case Type::histogram:
    case Type::distribution:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

std::vector<prometheus::ClientMetric::Label> labels_of(std::string_view names, const std::vector<std::string>& values) {
  std::vector<prometheus::ClientMetric::Label> labels;
  labels.reserve(values.size());
  for (const std::string& value : values) {
    const std::size_t comma = names.find(',');
    labels.push_back({std::string(names.substr(0, comma)), value});
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
  return labels;
}

prometheus::ClientMetric::Histogram histogram_of(const HistogramTotals& totals, bool with_bounds) {
  prometheus::ClientMetric::Histogram histogram;
  const std::span<const std::uint64_t> bounds = totals.bounds;
  histogram.bucket.reserve(with_bounds ? bounds.size() + 1 : 1);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    below += totals.buckets[i];
    const bool last = i == bounds.size();
    if (!last && !with_bounds) continue;
    histogram.bucket.push_back(
        {below, last ? std::numeric_limits<double>::infinity() : static_cast<double>(bounds[i]) / 1e9});
  }
  histogram.sample_count = below;
  histogram.sample_sum = static_cast<double>(totals.nanoseconds) / 1e9;
  return histogram;
}

}  // namespace

prometheus::MetricFamily model_of(const Family& part) {
  const Metric& metric = *part.metric;
  prometheus::MetricFamily made;
  made.name = metric.name;
  made.help = metric.help;
  made.type = type_of(metric.type);
  made.metric.reserve(part.points.size());
  for (const Point& point : part.points) {
    auto& one = made.metric.emplace_back();
    one.label = labels_of(metric.labels, point.labels);
    if (point.histogram) {
      one.histogram = histogram_of(*point.histogram, point.with_bounds);
    } else {
      (metric.type == Type::counter ? one.counter.value : one.gauge.value) = point.value;
    }
  }
  return made;
}

}  // namespace carpool::metrics
