#include "proxy/server/admin/failing.h"

#include <chrono>

#include "proxy/server/admin/history.h"

namespace carpool::proxy::admin {

namespace {
// Returns the requests of the last 15 seconds, of the last minute if there were none, or all of them.
PoolInfo::Failing recent(const AdminView& view, const std::string& origin) {
  for (const std::chrono::seconds time : {std::chrono::seconds(15), std::chrono::seconds(60)}) {
    if (view.history() == nullptr) break;
    const History::Recent found = view.history()->last(time, origin);
    if (found.requests != 0) return {found.requests, found.failed, time, {}};
  }
  const TrafficInfo traffic = view.traffic(origin);
  return {traffic.requests, traffic.failed, std::nullopt, {}};
}

// Returns the reason of the last dial if it failed; otherwise empty, as for an origin that responds with errors.
std::string_view reason_of(const pool::Destination::Snapshot& s) {
  return s.last_dial_failed ? pool::name(*s.last_dial_failed) : std::string_view();
}
}  // namespace

void find_failing(const AdminView& view, PoolInfo& pool) {
  PoolInfo::Failing found = recent(view, pool.origin);
  // Without a request of the last minute only an origin that never served one fails.
  const bool most =
      found.requests != 0 && (found.time ? found.failed * 2 >= found.requests : found.failed == found.requests);
  if (!most && !pool.snapshot.probing) return pool.failing.reset();
  found.reason = reason_of(pool.snapshot);
  pool.failing = found;
}

void find_failing(const AdminView& view, std::vector<PoolInfo>& pools) {
  for (PoolInfo& pool : pools) find_failing(view, pool);
}

}  // namespace carpool::proxy::admin
