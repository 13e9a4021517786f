// Renders pools: as JSON for people and tools, and as samples for the metrics page.
#pragma once

#include <vector>

#include "metrics/sample.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response pools_response(std::vector<PoolInfo> pools);
// Includes live histograms of the connections' ages, idle times and uses.
Response pool_response(const PoolInfo& pool, const std::vector<ConnectionInfo>& connections,
                       const std::vector<AddressInfo>& addresses);
Response connections_response(std::vector<ConnectionInfo> connections);
// SimplePool's counters per URI; the format is fixed by a golden file.
Response pool_metrics_response(const std::vector<PoolInfo>& pools);

metrics::OriginSample sample_of(const PoolInfo& pool);
// Everything that a scrape shows besides the registry. Any thread but a loop.
metrics::Sample take_sample(const AdminView& view);
// Takes the sample here, atomically; its text is generated as it is read.
Response metrics_response(const AdminView& view, const metrics::Registry& registry);

}  // namespace carpool::proxy::admin
