// Families: a whole scrape as plain values, in the catalog's order and in parts, so that no more of it has to exist at
// once than its reader takes. The sample was taken at one moment, so the pools' ledger balances; the loops' own cells
// are read when their family's turn comes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/catalog.h"
#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics {

class Adding;   // families.cc
struct Source;  // the same

struct Point {
  std::vector<std::string> labels;  // values, in the order of the metric's label names
  double value = 0;
  std::unique_ptr<HistogramTotals> histogram;  // instead of value, for a histogram
};

// Points of one family, a long one's in several.
struct Family {
  const Metric* metric = nullptr;
  bool begins = true;  // these are its first
  std::vector<Point> points;
};

class Families {
 public:
  Families(const Registry& registry, Sample sample);

  // Some more points, all those of an origin together. A family without a point is left out. False: there are no more.
  bool next(Family& family);

 private:
  using OfOrigin = void (*)(Adding&, const OriginSample&);
  using OfShard = void (*)(Adding&, const OriginShard&);
  using OfProgram = void (*)(Adding&, const Registry&, const Sample&);
  friend Source;

  // The metric's points from where the last part ended. True: they are complete.
  bool add(OfOrigin of, Family& family);
  bool add(OfShard of, Family& family);
  bool add(OfProgram of, Family& family);

  const Registry& registry_;
  Sample sample_;           // its origins by their labels
  std::size_t metric_ = 0;  // in the catalog
  std::size_t origin_ = 0;  // whose points come next
  bool begins_ = true;
};

}  // namespace carpool::metrics
