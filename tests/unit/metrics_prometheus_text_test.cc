// Unit tests of our writer of text format 0.0.4: the same bytes as the library's.
#include "metrics/prometheus_text.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>
#include <random>

namespace carpool::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void expect_same(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    append_heading(text, family);
    append_samples(text, family);
  }
  EXPECT_EQ(text, prometheus::TextSerializer().Serialize(families));
}

MetricFamily family(MetricType type, std::vector<ClientMetric> metrics) {
  return {"carpool_thing", "What it is: \"this\".", type, std::move(metrics)};
}

ClientMetric valued(double value, std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = metric.gauge.value = value;
  return metric;
}

ClientMetric spread(std::vector<ClientMetric::Label> labels, double sum, std::vector<ClientMetric::Bucket> buckets) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.histogram.sample_count = buckets.empty() ? 0 : buckets.back().cumulative_count;
  metric.histogram.sample_sum = sum;
  metric.histogram.bucket = std::move(buckets);
  return metric;
}

TEST(ExpositionText, WritesEveryNumberAsTheLibraryDoes) {
  std::vector<ClientMetric> metrics;
  for (const double value :
       {0.0, -0.0, 1.0, -5.0, 0.1, 0.00025, 1e-7, 1e15, 1e16, 999999999999999.0, 1e15 - 0.5, 123456789012345678.0,
        1e300, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    metrics.push_back(valued(value, {}));
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    metrics.push_back(valued(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 140) - 120), {}));
  }
  expect_same({family(MetricType::Counter, metrics), family(MetricType::Gauge, metrics)});
}

TEST(ExpositionText, EscapesLabelsAsTheLibraryDoes) {
  expect_same({family(MetricType::Counter, {valued(1, {{"a", "plain"}}), valued(2, {{"a", "\"\\\n\t\x7f"}, {"b", ""}}),
                                            valued(3, {{"a", "\xc3\xa4"}, {"b", "http://[::1]:80"}})})});
}

TEST(ExpositionText, WritesHistogramsAsTheLibraryDoes) {
  const double beyond = std::numeric_limits<double>::infinity();
  expect_same(
      {family(MetricType::Histogram, {spread({}, 0.75, {{1, 0.0001}, {3, 0.00025}, {7, beyond}}),
                                      spread({{"a", "b"}}, 12, {{0, 0.0001}, {3, 0.5}, {9, beyond}}),
                                      spread({{"a", "c"}}, 0, {{0, 1}, {3, 2.5}}), spread({{"a", "d"}}, 0, {})})});
}

TEST(ExpositionText, WritesNothingForNothing) {
  expect_same({});
  expect_same({family(MetricType::Gauge, {})});
}

}  // namespace
}  // namespace carpool::metrics
