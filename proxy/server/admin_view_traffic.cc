// ServerAdminView, the requests of an origin and of all origins together.
#include "metrics/registry.h"
#include "proxy/server/admin_view.h"

namespace carpool::proxy {

namespace {
// Returns a visitor of the registry's shards that adds to `traffic`.
auto adding_to(admin::TrafficInfo& traffic) {
  return [&traffic](const std::string&, const metrics::OriginShard& shard) {
    shard.requests.for_each([&](metrics::MethodId, std::uint16_t code, std::uint64_t count) {
      constexpr std::uint16_t kFailures = 500;
      traffic.requests += count;
      if (code == metrics::kNoCode || code >= kFailures) traffic.failed += count;
    });
    const metrics::HistogramTotals times = shard.request.read();
    for (std::size_t i = 0; i < times.buckets.size(); ++i) traffic.times[i] += times.buckets[i];
  };
}
}  // namespace

admin::TrafficInfo ServerAdminView::traffic(const std::string& origin) const {
  admin::TrafficInfo traffic;
  const metrics::OriginSlot slot = parts_.metrics.slot_of(origin);
  if (slot == metrics::kOtherOrigin) return traffic;  // shared by the origins beyond [metrics] max_origins
  parts_.metrics.visit_origin(slot, adding_to(traffic));
  return traffic;
}

// Skips the slot kNoOrigin, whose requests were refused before their origin was known.
admin::TrafficInfo ServerAdminView::total_traffic() const {
  admin::TrafficInfo traffic;
  metrics::OriginSlot slot = metrics::kOtherOrigin;
  while (parts_.metrics.visit_origin(slot, adding_to(traffic))) ++slot;
  return traffic;
}

}  // namespace carpool::proxy
