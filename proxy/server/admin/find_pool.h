// find_pool(): the pool of an origin, for the routes that concern one origin.
#pragma once

#include <optional>
#include <string>

#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

// Returns the pool with this label, the one in force if a reload replaced others, or that of an [[origin]] that no
// request has used yet.
std::optional<PoolInfo> find_pool(const AdminView& view, const std::string& label);

}  // namespace carpool::proxy::admin
