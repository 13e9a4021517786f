// The catalog: every metric that carpool may export, with the source of its points, in the order of export.
// docs/metrics.md is generated from it and a test compares them. A metric of a disabled feature has no points and no
// heading.
#pragma once

#include <span>
#include <variant>

#include "metrics/metric.h"

namespace carpool::metrics {

class PointMerger;    // point_merger.h
class Registry;       // registry.h
struct OriginSample;  // sample.h
struct OriginShard;   // origin_shard.h
struct Sample;        // sample.h

// A metric and the function that adds its points: those of an origin's pool, of one loop's counts for an origin, or of
// the process.
struct CatalogEntry {
  using OfOrigin = void (*)(PointMerger&, const OriginSample&);
  using OfShard = void (*)(PointMerger&, const OriginShard&);
  using OfProgram = void (*)(PointMerger&, const Registry&, const Sample&);

  Metric metric;
  std::variant<OfOrigin, OfShard, OfProgram> source;
};

std::span<const CatalogEntry> catalog();

}  // namespace carpool::metrics
