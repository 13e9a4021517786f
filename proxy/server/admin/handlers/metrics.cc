#include "proxy/server/admin/handlers/metrics.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "metrics/prometheus.h"
#include "pool/directory/explain_size.h"
#include "proxy/server/admin/handlers/pools.h"

namespace carpool::proxy::admin {
namespace {

// Zeros may be omitted, because these samples stay in memory until a slow scraper has read them.
template <class Names, class Counts>
std::vector<metrics::Labelled> labelled(const Names& names, const Counts& counts, bool zeros) {
  std::vector<metrics::Labelled> parts;
  const auto none = std::count(counts.begin(), counts.end(), 0U);
  parts.reserve(counts.size() - (zeros ? 0 : static_cast<std::size_t>(none)));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0 || zeros) parts.push_back({names[i], counts[i]});
  }
  return parts;
}

metrics::TimesSample times_of(const pool::TimeDistribution& times) {
  static_assert(std::equal(metrics::kAgeBounds.begin(), metrics::kAgeBounds.end(),
                           pool::TimeDistribution::kBounds.begin(), pool::TimeDistribution::kBounds.end(),
                           [](std::uint64_t nanoseconds, Duration bound) {
                             return nanoseconds == static_cast<std::uint64_t>(bound.count());
                           }),
                "the pool counts by the bounds that are exported");
  return {times.counts, times.sum.count()};
}

class Scrape final : public Pieces {
 public:
  Scrape(const metrics::Registry& registry, metrics::Sample sample) : text_(registry, std::move(sample)) {}
  bool next(std::string& out) override { return text_.next(out); }

 private:
  metrics::Exposition text_;
};

}  // namespace

// A pool that a reload replaced adds only its counters, connections and requests to those of its successor.
metrics::OriginSample sample_of(const PoolInfo& info) {
  const pool::Destination::Snapshot& s = info.snapshot;
  metrics::OriginSample sample;
  sample.label = info.origin;
  sample.borrows = s.borrows;
  sample.restores = s.restores;
  sample.leaks = s.leaks;
  sample.opened = labelled(pool::kOpenCauseNames, s.opened, false);
  sample.closed = labelled(pool::kCloseCauseNames, s.closed, false);
  sample.failures = labelled(pool::kFailureReasonNames, s.failures, true);
  sample.connections = labelled(pool::kConnectionStatusNames, s.connections, true);
  if (s.auto_size) sample.size_changes = labelled(pool::kSizeReasons, s.auto_size->history.counts(), false);
  sample.peak = s.peak;
  sample.size = s.size;
  sample.ages = times_of(s.ages);
  sample.idle_times = times_of(s.idle_times);
  sample.waiting = s.waiting;
  sample.longest_wait_nanoseconds = static_cast<std::uint64_t>(s.max_wait.count());
  sample.probing = s.probing && !info.replaced ? 1 : 0;
  sample.paused = s.paused && !info.replaced ? 1 : 0;
  sample.cooling_down = s.cooling_down && !info.replaced ? 1 : 0;
  sample.cool_downs = s.cool_downs;
  sample.undialed = s.undialed;
  for (std::size_t i = 0; i < s.class_count; ++i) {
    sample.classes.push_back({class_name(info, i), s.classes[i].waiting, s.classes[i].leases, s.classes[i].limit});
  }
  if (!info.replaced) {
    sample.addresses = {
        {"usable", info.addresses.usable}, {"ejected", info.addresses.ejected}, {"gone", info.addresses.gone}};
  }
  for (const AddressInfo& one : info.each_address) {
    if (sample.each_address.size() == metrics::OriginSample::kMaxShownAddresses) break;
    sample.each_address.push_back({one.address, one.open, one.busy, 0, 0});
    if (info.replaced) continue;
    sample.each_address.back().requests = one.requests;
    sample.each_address.back().response_nanoseconds = static_cast<std::uint64_t>(one.response.count());
  }
  return sample;
}

metrics::Sample take_sample(const AdminView& view) {
  metrics::Sample sample;
  const CountedPools counted = view.counted();
  const ReclaimedInfo& reclaimed = counted.reclaimed;
  sample.origins.reserve(counted.pools.size() + counted.ended.size() + 1);
  for (const PoolInfo& pool : counted.pools) sample.origins.push_back(sample_of(pool));
  sample.pools = sample.origins.size();
  for (const PoolInfo& ended : counted.ended) sample.origins.push_back(sample_of(ended));
  sample.pools_max = reclaimed.max_origins;
  sample.pools_reclaimed = reclaimed.pools;
  sample.pools_evicted = reclaimed.evicted;
  sample.pools_starved = reclaimed.starved;
  sample.untracked = reclaimed.untracked;
  if (reclaimed.pools != 0) sample.origins.push_back(sample_of({"other", reclaimed.sums, std::nullopt, {}}));
  sample.exec = view.exec();
  sample.process = metrics::read_process();
  sample.build = view.build();
  sample.log_dropped = view.log_dropped();
  sample.admin = view.admin();
  sample.certificates = view.certificates();
  sample.intercept = view.intercept();
  const OverloadInfo overload = view.overload();
  const auto ratio = [](const OverloadInfo::Use& use) {
    return use.limit == 0 ? 0.0 : static_cast<double>(use.used) / static_cast<double>(use.limit);
  };
  sample.overload = metrics::OverloadSample{overload.stage, ratio(overload.memory), ratio(overload.descriptors),
                                            overload.failed_allocations, overload.memory_returned};
  return sample;
}

Response metrics_response(const AdminView& view, const metrics::Registry& registry) {
  Response response = text_response(200, metrics::kContentType, {});
  response.pieces = std::make_unique<Scrape>(registry, take_sample(view));
  return response;
}

}  // namespace carpool::proxy::admin
