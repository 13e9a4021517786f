// Stage: how much carpool sheds, given how much of what it may use is in use. Pure. Each stage does what those before
// it do: first connections that would be kept are not, then those who come are refused, then what rests is closed; what
// runs is always finished.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace carpool::proxy {

enum class ShedLevel : std::uint8_t { nothing, keep_alive, new_clients, idle };
inline constexpr std::array<std::string_view, 4> kSheddingNames{"nothing", "keep_alive", "new_clients", "idle"};
inline std::string_view name(ShedLevel stage) {
  return kSheddingNames[static_cast<std::size_t>(stage)];
}

// Percent of what may be used at which each stage begins; 0: never.
struct Watermarks {
  std::uint32_t keep_alive = 85, new_clients = 90, idle = 95;
};

// A stage is left this much below its mark, so that it does not come and go with every connection.
inline constexpr double kHysteresis = 3;

// `used`: percent of the scarcest resource.
inline ShedLevel next_stage(ShedLevel now, double used, const Watermarks& marks) {
  const std::array<std::uint32_t, 3> at{marks.keep_alive, marks.new_clients, marks.idle};
  ShedLevel next = ShedLevel::nothing;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto stage = static_cast<ShedLevel>(i + 1);
    const double mark = at[i] - (now >= stage ? kHysteresis : 0);
    if (at[i] != 0 && used >= mark) next = stage;
  }
  return next;
}

}  // namespace carpool::proxy
