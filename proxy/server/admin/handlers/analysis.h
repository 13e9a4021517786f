// Analysis of one pool's history for a person: explain (why), advice (the size that the load calls for) and what-if
// (the same load simulated with other settings). Computing takes milliseconds: not for a loop that serves requests.
#pragma once

#include <string_view>

#include "proxy/server/admin/handlers/pool_analysis.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response explain_response(const PoolInfo& pool, const PoolAnalysis& study);
// `target`: the request's, whose parameter `wait` states the wait that the size shall keep.
Response advice_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target);
// The query of `target` names the settings to change.
Response what_if_response(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target);

}  // namespace carpool::proxy::admin
