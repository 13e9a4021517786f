// Informational: limits the number and the bytes of the 1xx heads of one response, for any protocol of the origin.
// HTTP/2 does not flow-control heads, and they must not accumulate for a client that does not read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proxy/http/limits.h"

namespace carpool::proxy::http {

inline constexpr std::uint32_t kMaxInformational = 64;

class Informational {
 public:
  // Counts one more head of `bytes`. Returns an error text, or nullptr.
  const char* add(std::size_t bytes, const Limits& limits) {
    ++heads_;
    bytes_ += bytes;
    if (heads_ > kMaxInformational) return "more than 64 informational (1xx) heads before the final one";
    if (bytes_ > limits.header_bytes) return "informational (1xx) heads that together exceed the limit of one head";
    return nullptr;
  }

 private:
  std::uint32_t heads_ = 0;
  std::size_t bytes_ = 0;
};
static_assert(kMaxInformational == 64, "the words above name the bound");

}  // namespace carpool::proxy::http
