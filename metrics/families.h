// Families: a scrape as plain values, in the catalog's order and in parts, so that memory is bounded by the part. The
// sample was taken at one moment, so the pools' ledger balances; the loops' cells are read when their family is
// produced.
#pragma once

#include <cstddef>
#include <vector>

#include "metrics/catalog.h"
#include "metrics/point.h"
#include "metrics/registry.h"
#include "metrics/sample.h"

namespace carpool::metrics {

// Points of one family; a long one consists of several parts.
struct Family {
  const Metric* metric = nullptr;
  bool begins = true;  // first part of the family
  std::vector<Point> points;
};

class Families {
 public:
  Families(const Registry& registry, Sample sample);

  // Produces more points, always all of an origin together. Skips families without points. Returns false at the end.
  bool next(Family& family);

 private:
  // Continues the metric's points after the last part. Returns true if they are complete.
  bool add(CatalogEntry::OfOrigin of, Family& family);
  bool add(CatalogEntry::OfShard of, Family& family);
  bool add(CatalogEntry::OfProgram of, Family& family);

  const Registry& registry_;
  Sample sample_;           // its origins sorted by label
  std::size_t metric_ = 0;  // index in the catalog
  std::size_t origin_ = 0;  // the next origin
  bool begins_ = true;
};

}  // namespace carpool::metrics
