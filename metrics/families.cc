#include "metrics/families.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "metrics/point_merger.h"

namespace carpool::metrics {
namespace {

constexpr std::size_t kPart = 256;  // lines of text, approximately: some 20 KiB

bool full(const Family& family) {
  const std::size_t lines = family.metric->type >= Type::histogram ? kBuckets + 2 : 1;
  return family.points.size() * lines >= kPart;
}

}  // namespace

// Origins beyond max_origins share a label, and so do pools of one origin whose TLS identity a reload changed.
Families::Families(const Registry& registry, Sample sample) : registry_(registry), sample_(std::move(sample)) {
  for (OriginSample& origin : sample_.origins) {
    if (registry.slot_of(origin.label) != kOtherOrigin) continue;
    origin.label = "other";
    origin.each_address.clear();  // their number would have no limit
  }
  std::stable_sort(sample_.origins.begin(), sample_.origins.end(),
                   [](const OriginSample& a, const OriginSample& b) { return a.label < b.label; });
}

bool Families::next(Family& family) {
  family.points.clear();
  while (metric_ < catalog().size() && family.points.empty()) {
    const CatalogEntry& entry = catalog()[metric_];
    family.metric = &entry.metric;
    family.begins = begins_;
    const bool complete = std::visit([&](auto of) { return add(of, family); }, entry.source);
    begins_ = complete || (begins_ && family.points.empty());
    if (!complete) continue;
    ++metric_;
    origin_ = 0;
  }
  return !family.points.empty();
}

bool Families::add(CatalogEntry::OfOrigin of, Family& family) {
  PointMerger points(family.points);
  const std::vector<OriginSample>& all = sample_.origins;
  while (origin_ < all.size() && !full(family)) {
    const std::string& label = all[origin_].label;
    points.begin(label);
    for (; origin_ < all.size() && all[origin_].label == label; ++origin_) of(points, all[origin_]);
  }
  return origin_ == all.size();
}

bool Families::add(CatalogEntry::OfShard of, Family& family) {
  PointMerger points(family.points);
  while (!full(family)) {
    const std::string* last = nullptr;
    const bool there = registry_.visit_origin(static_cast<OriginSlot>(origin_),
                                              [&](const std::string& label, const OriginShard& shard) {
                                                if (std::exchange(last, &label) == nullptr) points.begin(label);
                                                of(points, shard);
                                              });
    if (!there) return true;
    points.end();
    ++origin_;
  }
  return false;
}

bool Families::add(CatalogEntry::OfProgram of, Family& family) {
  PointMerger points(family.points);
  of(points, registry_, sample_);
  return true;
}

}  // namespace carpool::metrics
