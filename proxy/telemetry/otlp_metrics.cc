#include "proxy/telemetry/otlp_metrics.h"

#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/protobuf.h"
#include "proxy/telemetry/otlp_attributes.h"

namespace carpool::proxy::otlp {

namespace {

using metrics::Family;
using metrics::Point;
using metrics::Type;

// Field numbers of metrics.proto.
constexpr std::uint32_t kMetrics = 2;                                                 // of ScopeMetrics
constexpr std::uint32_t kMetricName = 1, kDescription = 2, kUnit = 3;                 // of Metric
constexpr std::uint32_t kGauge = 5, kSum = 7, kHistogram = 9;                         // data of Metric
constexpr std::uint32_t kPoints = 1, kTemporality = 2, kMonotonic = 3;                // of Gauge, Sum and Histogram
constexpr std::uint32_t kPointStart = 2, kPointTime = 3, kDouble = 4, kOfNumber = 7;  // of NumberDataPoint
constexpr std::uint32_t kCount = 4, kTotal = 5, kCounts = 6, kBoundsAt = 7, kOfHistogram = 9;  // of HistogramDataPoint
constexpr std::uint64_t kCumulative = 2;

std::uint32_t data_of(Type type) {
  switch (type) {
    case Type::counter:
      return kSum;
    case Type::gauge:
      return kGauge;
    case Type::histogram:
    case Type::distribution:
      return kHistogram;
  }
  return kGauge;
}

// Returns the UCUM unit for the name's suffix, which Prometheus requires.
std::string_view unit_of(std::string_view name) {
  if (name.ends_with("_total")) name.remove_suffix(6);
  return name.ends_with("_seconds") ? "s" : name.ends_with("_bytes") ? "By" : std::string_view();
}

void add_labels(ProtobufWriter& out, std::uint32_t field, std::string_view names, const Point& point) {
  Attributes add(out, field);
  for (const std::string& value : point.labels) {
    const std::size_t comma = names.find(',');
    add.text(names.substr(0, comma), value);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
}

// Every point contains all bounds, because changed bounds would end the series.
void add_histogram(ProtobufWriter& out, const metrics::HistogramTotals& totals) {
  out.fixed64(kCount, totals.count());
  out.real(kTotal, static_cast<double>(totals.nanoseconds) / 1e9);
  out.head(kCounts, 8 * totals.buckets.size());
  for (const std::uint64_t count : totals.buckets) out.little_endian(count, 8);
  out.head(kBoundsAt, 8 * metrics::kBounds.size());
  for (const std::uint64_t bound : metrics::kBounds) {
    out.little_endian(std::bit_cast<std::uint64_t>(static_cast<double>(bound) / 1e9), 8);
  }
}

void add_point(ProtobufWriter& out, const metrics::Metric& metric, const Point& point, const MetricTimes& times) {
  const std::size_t begun = out.begin(kPoints);
  if (metric.type != Type::gauge) out.fixed64(kPointStart, times.start);
  out.fixed64(kPointTime, times.now);
  if (metric.type == Type::histogram) {
    add_histogram(out, *point.histogram);
    add_labels(out, kOfHistogram, metric.labels, point);
  } else {
    out.real(kDouble, point.value);
    add_labels(out, kOfNumber, metric.labels, point);
  }
  out.end(begun);
}

// OpenMetric: the metric of one family while its parts are written one after the other.
class OpenMetric {
 public:
  OpenMetric(ProtobufWriter& out, const metrics::Metric& metric) : out_(out), metric_(out.begin(kMetrics)) {
    out_.bytes(kMetricName, metric.name);
    out_.bytes(kDescription, metric.help);
    if (const std::string_view unit = unit_of(metric.name); !unit.empty()) out_.bytes(kUnit, unit);
    data_ = out_.begin(data_of(metric.type));
    if (metric.type != Type::gauge) out_.number(kTemporality, kCumulative);
    if (metric.type == Type::counter) out_.number(kMonotonic, 1);
  }
  OpenMetric(const OpenMetric&) = delete;
  OpenMetric& operator=(const OpenMetric&) = delete;
  ~OpenMetric() {
    out_.end(data_);
    out_.end(metric_);
  }

 private:
  ProtobufWriter& out_;
  const std::size_t metric_;
  std::size_t data_ = 0;
};

}  // namespace

std::string encode_metrics(metrics::Families families, const MetricTimes& times) {
  std::string encoded;
  ProtobufWriter out(encoded);
  std::optional<OpenMetric> open;
  for (Family part; families.next(part);) {
    if (part.metric->type == Type::distribution) continue;  // OTLP has no histogram whose counts fall
    if (part.begins) {
      open.reset();
      open.emplace(out, *part.metric);
    }
    for (const Point& point : part.points) add_point(out, *part.metric, point, times);
  }
  open.reset();
  return encoded;
}

}  // namespace carpool::proxy::otlp
