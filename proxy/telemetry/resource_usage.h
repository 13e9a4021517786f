// Memory and descriptors used by this process, and their limits, as the kernel reports them. The functions read files
// below /proc and /sys, so they are meant for the admin thread, not for loops that serve clients.
#pragma once

#include <cstdint>
#include <string>

namespace carpool::proxy {

struct Use {
  std::uint64_t used = 0, limit = 0;  // limit 0: unlimited
  double percent() const { return limit == 0 ? 0 : 100.0 * static_cast<double>(used) / static_cast<double>(limit); }
};

// Resident: bytes of all resident pages, and of those among them that are file-backed or shared.
struct Resident {
  std::uint64_t all = 0, files = 0;
  std::uint64_t own() const { return all - files; }
};
Resident resident(const std::string& root = {});

// Returns the resident pages plus the socket buffers that the kernel holds for the cgroup. The limit is the smaller of
// `configured` (0: not given) and the cgroup's. `root` is prepended to /proc and /sys.
Use memory_use(std::uint64_t configured, const std::string& root = {});
// Returns the number of open descriptors; the limit is RLIMIT_NOFILE.
Use descriptor_use();

}  // namespace carpool::proxy
