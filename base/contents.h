// Reads whole files, up to a bound: a device or a file that grows without end is an error, not memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool {

// The bytes of the file at `path`. The Fault's detail is the system's reason, or says that the file is longer than
// `most` bytes; its kind is body_too_large then.
Result<std::string> contents(const std::string& path, std::size_t most);

// Tells contents apart; in this process alone.
inline std::size_t digest_of(std::string_view bytes) {
  return std::hash<std::string_view>{}(bytes);
}

}  // namespace carpool
