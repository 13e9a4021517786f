// Families: the whole of one scrape as plain values, in the catalog's order. Pure but for reading the loops' cells.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/catalog.h"
#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics {

struct Point {
  std::vector<std::string> labels;  // values, in the order of the metric's label names
  double value = 0;
  std::unique_ptr<HistogramTotals> histogram;  // instead of value, for a histogram
};

struct Family {
  const Metric* metric = nullptr;
  std::vector<Point> points;
};

// A family without a point is left out.
std::vector<Family> families(const Registry& registry, const Sample& sample);

}  // namespace carpool::metrics
