// Usage: what this process uses of memory and descriptors, and how much it may use, as the kernel says. Reads a few
// files below /proc and /sys: for the admin thread, not for a loop that serves.
#pragma once

#include <cstdint>
#include <string>

namespace carpool::proxy {

struct Use {
  std::uint64_t used = 0, limit = 0;  // limit 0: there is none that counts
  double percent() const { return limit == 0 ? 0 : 100.0 * static_cast<double>(used) / static_cast<double>(limit); }
};

// Bytes of the pages that are in memory, and those among them that are a file's or shared.
struct Resident {
  std::uint64_t all = 0, files = 0;
  std::uint64_t own() const { return all - files; }
};
Resident resident(const std::string& root = {});

// Resident pages, and the socket buffers that the kernel holds for the cgroup. The limit is the least of `configured`
// (0: not given) and what the cgroup grants. `root` stands before /proc and /sys.
Use memory_use(std::uint64_t configured, const std::string& root = {});
// Usage of RLIMIT_NOFILE.
Use descriptor_use();

}  // namespace carpool::proxy
