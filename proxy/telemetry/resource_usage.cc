#include "proxy/telemetry/resource_usage.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "proxy/config/cgroup.h"

namespace carpool::proxy {

namespace {

// Returns the number of open descriptors. Linux 6.2 and later report it as the directory's size; on older kernels the
// entries are counted.
std::uint64_t open_descriptors() {
  struct stat info {};
  if (::stat("/proc/self/fd", &info) == 0 && info.st_size > 0) return static_cast<std::uint64_t>(info.st_size);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  std::uint64_t entries = 0;
  while (directory && ::readdir(directory.get()) != nullptr) ++entries;  // NOLINT(concurrency-mt-unsafe): our own
  return entries > 3 ? entries - 3 : 0;                                  // ".", ".." and this directory's descriptor
}

}  // namespace

Resident resident(const std::string& root) {
  std::ifstream file(root + "/proc/self/statm");
  std::uint64_t total = 0, pages = 0, files = 0;
  file >> total >> pages >> files;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {pages * page, files * page};
}

Use memory_use(std::uint64_t configured, const std::string& root) {
  const config::CgroupMemory group = config::cgroup_memory(root);
  Use use;
  use.used = resident(root).all + group.sockets;
  use.limit = configured == 0 ? group.limit : configured;
  if (configured != 0 && group.limit != 0) use.limit = std::min(configured, group.limit);
  return use;
}

Use descriptor_use() {
  rlimit limit{};
  Use use;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return use;
  use.limit = limit.rlim_cur;
  use.used = open_descriptors();
  return use;
}

}  // namespace carpool::proxy
