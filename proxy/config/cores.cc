#include "proxy/config/cores.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "proxy/config/cgroup.h"

namespace carpool::proxy::config {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path) >> std::ws, line);
  return line;
}

double cores(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : kNoQuota;
}

// cpu.max of cgroup v2: "150000 100000" or "max 100000".
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

unsigned affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

}  // namespace

unsigned granted_cores(const std::string& root) {
  const double granted = least_of_cgroups(root, "cpu", quota_v2, quota_v1);
  const unsigned available = affinity();
  if (granted >= available) return available;
  return std::max(1U, static_cast<unsigned>(std::ceil(granted)));
}

}  // namespace carpool::proxy::config
