#include "proxy/config/group.h"

#include <grp.h>

#include <array>
#include <limits>

#include "base/ascii.h"

namespace carpool::proxy::config {

std::optional<gid_t> find_group(const std::string& name) {
  if (const auto number = number_in<gid_t>(name)) {
    if (*number == std::numeric_limits<gid_t>::max()) return std::nullopt;  // chown() takes it as "unchanged"
    return number;
  }
  std::array<char, 16384> memory;
  group entry{};
  group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found) != 0) return std::nullopt;
  return found == nullptr ? std::nullopt : std::optional(entry.gr_gid);
}

}  // namespace carpool::proxy::config
