// Limits: the sizes at which a head is rejected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carpool::proxy::http {

struct Limits {
  std::uint32_t header_bytes = 64 * 1024;
  std::uint32_t headers = 100;
  std::uint32_t target = 16 * 1024;
};

inline constexpr std::size_t kMaxMethodLength = 64;  // much longer than any registered method

}  // namespace carpool::proxy::http
