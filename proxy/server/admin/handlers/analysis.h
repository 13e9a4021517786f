// What is made of one pool's past, for a person: why (explain), how much (advice), and what if (the same load replayed
// on other settings). Computing takes milliseconds: not for a loop that others wait for.
#pragma once

#include <string_view>

#include "proxy/server/admin/handlers/pool_analysis.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response explain_answer(const PoolInfo& pool, const PoolAnalysis& study);
Response advice_answer(const PoolInfo& pool, const PoolAnalysis& study);
// `target`: its query names the settings to change.
Response what_if_answer(const PoolInfo& pool, const PoolAnalysis& study, std::string_view target);

}  // namespace carpool::proxy::admin
