// PointMerger: merges the values of one metric into points by their labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/point.h"
#include "metrics/sample.h"

namespace carpool::metrics {

// Adds points to one metric. Points of one origin (all its loops, and others that share its label) are merged by their
// other labels, so only those are searched.
class PointMerger {
 public:
  using Labels = std::initializer_list<std::string_view>;  // besides the origin's

  explicit PointMerger(std::vector<Point>& points) : points_(points), own_(points.size()) {}
  // Assigns the following points to this origin.
  void begin(const std::string& origin) {
    origin_ = &origin;
    own_ = points_.size();
  }

  void add(Labels labels, std::uint64_t value) { at(labels).value += static_cast<double>(value); }
  void add_seconds(Labels labels, std::uint64_t nanoseconds) {
    at(labels).value += static_cast<double>(nanoseconds) / 1e9;
  }
  void set(Labels labels, double value) { at(labels).value = value; }
  void add(const HistogramTotals& totals) {
    if (totals.count() == 0) return;
    std::unique_ptr<HistogramTotals>& sum = at({}).histogram;
    if (!sum) sum = std::make_unique<HistogramTotals>();
    *sum += totals;
  }
  void at_least_seconds(Labels labels, std::uint64_t nanoseconds) {
    double& value = at(labels).value;
    value = std::max(value, static_cast<double>(nanoseconds) / 1e9);
  }
  // Adds a distribution; it has all its buckets if one of those that are merged demands them.
  void add_distribution(const HistogramTotals& totals, bool with_bounds) {
    if (totals.count() == 0) return;
    Point& point = at({});
    point.with_bounds = with_bounds || (point.histogram && point.with_bounds);
    if (!point.histogram) point.histogram = std::make_unique<HistogramTotals>();
    *point.histogram += totals;
  }
  // Must be called when the points of the origin are complete.
  void end() {
    const bool made = points_.size() > own_ && points_.back().histogram;
    if (made) points_.back().with_bounds = points_.back().histogram->count() >= kMinValues;
  }
  void add_all(const std::vector<Labelled>& parts) {
    for (const Labelled& part : parts) add({part.label}, part.value);
  }

 private:
  Point& at(Labels labels) {
    const std::size_t first = origin_ == nullptr ? 0 : 1;
    for (std::size_t i = points_.size(); i-- > own_;) {
      const std::vector<std::string>& known = points_[i].labels;
      if (std::equal(known.begin() + static_cast<std::ptrdiff_t>(first), known.end(), labels.begin(), labels.end())) {
        return points_[i];
      }
    }
    Point& point = points_.emplace_back();
    point.labels.reserve(first + labels.size());
    if (origin_ != nullptr) point.labels.push_back(*origin_);
    for (const std::string_view label : labels) point.labels.emplace_back(label);
    return point;
  }

  std::vector<Point>& points_;
  const std::string* origin_ = nullptr;
  std::size_t own_;  // the origin's points start here
};

}  // namespace carpool::metrics
