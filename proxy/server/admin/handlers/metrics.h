// The metrics page: a sample of the program, and its Prometheus text.
#pragma once

#include "metrics/sample.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

metrics::OriginSample sample_of(const PoolInfo& pool);
// Everything that a scrape shows besides the registry. Any thread but a loop.
metrics::Sample take_sample(const AdminView& view);
// Takes the sample here, atomically; its text is generated as it is read.
Response metrics_response(const AdminView& view, const metrics::Registry& registry);

}  // namespace carpool::proxy::admin
