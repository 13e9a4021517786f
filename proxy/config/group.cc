#include "proxy/config/group.h"

#include <grp.h>

#include <array>
#include <charconv>
#include <limits>

namespace carpool::proxy::config {

std::optional<gid_t> find_group(const std::string& name) {
  gid_t number = 0;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, number);
  if (error == std::errc() && end == last) {
    if (number == std::numeric_limits<gid_t>::max()) return std::nullopt;  // chown() takes it as "unchanged"
    return number;
  }
  std::array<char, 16384> memory;
  group entry{};
  group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found) != 0) return std::nullopt;
  return found == nullptr ? std::nullopt : std::optional(entry.gr_gid);
}

}  // namespace carpool::proxy::config
