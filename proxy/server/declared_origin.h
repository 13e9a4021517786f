// The admin endpoint's view of an [[origin]] that no request has used, and that therefore has no pool yet.
#pragma once

#include <optional>
#include <string>

#include "proxy/config/config.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy {

// Each function returns nothing if no [[origin]] has this label.
std::optional<admin::PoolInfo> declared_pool(const config::Config& config, const std::string& label);
std::optional<admin::PoolAnalysis> declared_study(const config::Config& config, const std::string& label);

}  // namespace carpool::proxy
