// The metrics page: a sample of the program, and its Prometheus text.
#pragma once

#include "metrics/sample.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

metrics::OriginSample sample_of(const PoolInfo& pool);
// Returns the data of a scrape besides the registry. May be called on any thread except a loop's.
metrics::Sample take_sample(const AdminView& view);
// Takes an atomic sample here; its text is generated while it is read.
Response metrics_response(const AdminView& view, const metrics::Registry& registry);

}  // namespace carpool::proxy::admin
