// What is said of pools: as JSON for people and tools, as samples for the metrics page.
#pragma once

#include <vector>

#include "metrics/sample.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response pools_answer(std::vector<PoolInfo> pools);
// With live histograms of the ages, rests and uses of its connections.
Response pool_answer(const PoolInfo& pool, const std::vector<ConnectionInfo>& connections,
                     const std::vector<AddressInfo>& addresses);
Response connections_answer(std::vector<ConnectionInfo> connections);
// SimplePool's counters per URI; the form is golden.
Response pool_metrics_answer(const std::vector<PoolInfo>& pools);

metrics::OriginSample sample_of(const PoolInfo& pool);
// The sample is taken here, as one; its text is made as it is read.
Response metrics_answer(const AdminView& view, const metrics::Registry& registry);

}  // namespace carpool::proxy::admin
