// How many cores this process may use: the affinity mask, or less where a cgroup's quota grants less.
#pragma once

#include <string>

namespace carpool::proxy::config {

// `root` stands before /proc and /sys. A quota of one and a half cores counts as two; never 0.
unsigned granted_cores(const std::string& root = {});

}  // namespace carpool::proxy::config
