// Whether an origin fails now, for lists of pools: the rule of the live page, and the last dial.
#pragma once

#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

// Sets `failing` of each pool.
void find_failing(const AdminView& view, std::vector<PoolInfo>& pools);
void find_failing(const AdminView& view, PoolInfo& pool);

}  // namespace carpool::proxy::admin
