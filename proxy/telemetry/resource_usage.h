// Usage and limits of memory and descriptors of this process, as the kernel reports them. Reads a few files below /proc
// and /sys, so it is meant for the admin thread, not for loops that serve clients.
#pragma once

#include <cstdint>
#include <string>

namespace carpool::proxy {

struct Use {
  std::uint64_t used = 0, limit = 0;  // limit 0: no effective limit
  double percent() const { return limit == 0 ? 0 : 100.0 * static_cast<double>(used) / static_cast<double>(limit); }
};

// Resident: bytes of all resident pages, and of those among them that belong to a file or are shared.
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
