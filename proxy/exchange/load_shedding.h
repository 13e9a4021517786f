// ShedLevel: how much load carpool sheds at a given use of memory and descriptors. Pure. Each level includes the
// previous ones: first client connections are not kept alive, then new clients are refused, then idle connections are
// closed. Requests in progress are always completed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace carpool::proxy {

enum class ShedLevel : std::uint8_t { nothing, keep_alive, new_clients, idle };
inline constexpr std::array<std::string_view, 4> kShedLevelNames{"nothing", "keep_alive", "new_clients", "idle"};
inline std::string_view name(ShedLevel level) {
  return kShedLevelNames[static_cast<std::size_t>(level)];
}

// Watermarks: percentage of the limit at which each level begins; 0 for never.
struct Watermarks {
  std::uint32_t keep_alive = 85, new_clients = 90, idle = 95;
};

// A level ends this many percentage points below its mark, so that it does not change with every connection.
inline constexpr double kHysteresis = 3;

// `used`: percentage of the scarcest resource.
inline ShedLevel next_level(ShedLevel now, double used, const Watermarks& marks) {
  const std::array<std::uint32_t, 3> at{marks.keep_alive, marks.new_clients, marks.idle};
  ShedLevel next = ShedLevel::nothing;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto level = static_cast<ShedLevel>(i + 1);
    const double mark = at[i] - (now >= level ? kHysteresis : 0);
    if (at[i] != 0 && used >= mark) next = level;
  }
  return next;
}

}  // namespace carpool::proxy
