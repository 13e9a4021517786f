// What a part of a reader did with the bytes it was given.
#pragma once

#include <cstddef>

namespace carpool::proxy::http {

struct Step {
  std::size_t taken = 0;
  bool done = false;
  bool too_large = false;
  const char* wrong = nullptr;  // a sentence for a person; the message cannot be read on
};

}  // namespace carpool::proxy::http
