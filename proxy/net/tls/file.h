// Reads a whole certificate or key file.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace carpool::proxy::tls {

inline constexpr std::size_t kLargestFile = std::size_t{16} << 20;

// The Fault's detail is the path and the system's error, or that the file exceeds kLargestFile.
Result<std::string> read_file(const std::string& path);

}  // namespace carpool::proxy::tls
