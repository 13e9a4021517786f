// Returns the number of cores this process may use: the affinity mask, or less if a cgroup's quota is smaller.
#pragma once

#include <string>

namespace carpool::proxy::config {

// `root` is prefixed to /proc and /sys. A quota of one and a half cores counts as two; never 0.
unsigned granted_cores(const std::string& root = {});

}  // namespace carpool::proxy::config
