// Step: the result of one parser stage on the bytes that it was given.
#pragma once

#include <cstddef>

namespace carpool::proxy::http {

struct Step {
  std::size_t consumed = 0;
  bool done = false;
  bool too_large = false;
  const char* error = nullptr;  // an error text; the message cannot be parsed any further
};

}  // namespace carpool::proxy::http
