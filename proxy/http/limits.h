// Limits: the sizes at which a head is rejected.
#pragma once

#include <cstdint>

namespace carpool::proxy::http {

struct Limits {
  std::uint32_t header_bytes = 64 * 1024;
  std::uint32_t headers = 100;
  std::uint32_t target = 16 * 1024;
};

}  // namespace carpool::proxy::http
