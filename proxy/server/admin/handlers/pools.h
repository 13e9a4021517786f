// What is said of pools: as JSON for people and tools, as samples for the metrics page.
#pragma once

#include <vector>

#include "metrics/sample.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Answer pools_answer(std::vector<PoolFacts> pools);
// With live histograms of the ages, rests and uses of its connections.
Answer pool_answer(const PoolFacts& pool, const std::vector<ConnectionFacts>& connections,
                   const std::vector<AddressFacts>& addresses);
Answer connections_answer(std::vector<ConnectionFacts> connections);
// SimplePool's counters per URI; the form is golden.
Answer pool_metrics_answer(const std::vector<PoolFacts>& pools);

metrics::OriginSample sample_of(const PoolFacts& pool);
// The sample is taken here, as one; its text is made as it is read.
Answer metrics_answer(const AdminView& view, const metrics::Registry& registry);

}  // namespace carpool::proxy::admin
