#include "proxy/config/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace carpool::proxy::config {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr double kNoLimitV1 = 0x1p62;  // v1 reports "no limit" as a number near the largest one

double least(const std::string& mount, std::string group, CgroupLimit limit) {
  double granted = limit(mount);
  while (group.size() > 1) {
    granted = std::min(granted, limit(mount + group));
    group.erase(group.rfind('/'));
  }
  return granted;
}

// One line of /proc/self/cgroup: ID:CONTROLLERS:PATH, no controllers on v2.
double granted_by(const std::string& line, const std::string& mounts, std::string_view controller, CgroupLimit v2,
                  CgroupLimit v1) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return kNoLimit;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string path = line.substr(second + 1);
  if (!path.starts_with('/')) return kNoLimit;
  if (controllers.empty()) return least(mounts, path, v2);
  const std::string wanted = std::string(1, ',').append(controller).append(1, ',');
  if ((',' + controllers + ',').find(wanted) == std::string::npos) return kNoLimit;
  return std::min(least(std::string(mounts).append(1, '/').append(controller), path, v1),
                  least(mounts + '/' + controllers, path, v1));
}

double number_of_file(const std::string& path) {  // "max" or an empty file: no limit
  double number = 0;
  return std::ifstream(path) >> number ? number : kNoLimit;
}

double memory_v2(const std::string& group) {
  return number_of_file(group + "/memory.max");
}

double memory_v1(const std::string& group) {
  const double limit = number_of_file(group + "/memory.limit_in_bytes");
  return limit >= kNoLimitV1 ? kNoLimit : limit;
}

// Socket buffers are counted per group, without its parents. The mount point is the container's own group.
std::uint64_t sockets_v2(const std::string& mount) {
  std::ifstream file(mount + "/memory.stat");
  std::string word;
  for (std::uint64_t value = 0; file >> word >> value;) {
    if (word == "sock") return value;
  }
  return 0;
}

}  // namespace

double least_of_cgroups(const std::string& root, std::string_view controller, CgroupLimit v2, CgroupLimit v1) {
  double granted = kNoLimit;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    granted = std::min(granted, granted_by(line, root + "/sys/fs/cgroup", controller, v2, v1));
  }
  return granted;
}

CgroupMemory cgroup_memory(const std::string& root) {
  CgroupMemory memory;
  const double limit = least_of_cgroups(root, "memory", memory_v2, memory_v1);
  if (limit == kNoLimit) return memory;
  memory.limit = static_cast<std::uint64_t>(limit);
  memory.sockets = sockets_v2(root + "/sys/fs/cgroup");
  return memory;
}

}  // namespace carpool::proxy::config
