// Reads the limits of this process's cgroups, v1 and v2. Parent groups limit it as well, so all of them are read, up to
// the mount point; a path that the mount does not contain (a container's view of the host's hierarchy) has no files and
// imposes no limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carpool::proxy::config {

// Reads one group's limit from its directory; infinity: it has none.
using CgroupLimit = double (*)(const std::string& directory);

// Returns the minimum over all groups of `controller`. `root` is prefixed to /proc and /sys.
double least_of_cgroups(const std::string& root, std::string_view controller, CgroupLimit v2, CgroupLimit v1);

struct CgroupMemory {
  std::uint64_t limit = 0;    // bytes; 0: none
  std::uint64_t sockets = 0;  // kernel buffers of its sockets
};
CgroupMemory cgroup_memory(const std::string& root = {});

}  // namespace carpool::proxy::config
