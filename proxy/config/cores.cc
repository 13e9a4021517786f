#include "proxy/config/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

namespace carpool::proxy::config {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

double cores(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : kUnlimited;
}

// "150000 100000", or "max 100000".
double quota_v2(const std::string& group) {
  double quota = 0, period = 0;
  std::istringstream(first_line(group + "/cpu.max")) >> quota >> period;
  return cores(quota, period);
}

double quota_v1(const std::string& group) {
  double quota = 0, period = 0;
  std::istringstream(first_line(group + "/cpu.cfs_quota_us")) >> quota;
  std::istringstream(first_line(group + "/cpu.cfs_period_us")) >> period;
  return cores(quota, period);
}

// The least that a group or any group above it grants. A path that the mount does not show (a container's view of the
// host's hierarchy) has no files; the walk still ends at the mount itself.
double least(const std::string& mount, std::string group, double (*quota)(const std::string&)) {
  double granted = quota(mount);
  while (group.size() > 1) {
    granted = std::min(granted, quota(mount + group));
    group.erase(group.rfind('/'));
  }
  return granted;
}

// One line of /proc/self/cgroup: ID:CONTROLLERS:PATH, no controllers on v2.
double granted_by(const std::string& line, const std::string& mounts) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return kUnlimited;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string path = line.substr(second + 1);
  if (!path.starts_with('/')) return kUnlimited;
  if (controllers.empty()) return least(mounts, path, quota_v2);
  if ((',' + controllers + ',').find(",cpu,") == std::string::npos) return kUnlimited;
  return std::min(least(mounts + "/cpu", path, quota_v1), least(mounts + '/' + controllers, path, quota_v1));
}

unsigned affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

unsigned granted_cores(const std::string& root) {
  double granted = kUnlimited;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    granted = std::min(granted, granted_by(line, root + "/sys/fs/cgroup"));
  }
  const unsigned available = affinity();
  if (granted >= available) return available;
  return std::max(1U, static_cast<unsigned>(std::ceil(granted)));
}

}  // namespace carpool::proxy::config
