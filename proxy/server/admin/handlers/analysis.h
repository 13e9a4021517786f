// Analysis of one pool's history for an operator: explain (why connections were opened and closed), advice (the size
// that the load requires) and what-if (the same load simulated with other settings). Computing takes milliseconds, so
// it must not run on a loop that serves requests.
#pragma once

#include <string_view>

#include "proxy/server/admin/handlers/pool_analysis.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response explain_response(const PoolInfo& pool, const PoolAnalysis& study);
// `target`: that of the request, whose parameter `wait` gives the wait that the size must achieve.
Response advice_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target);
// `target`: its query contains the settings to change.
Response what_if_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target);

}  // namespace carpool::proxy::admin
