// Reads a whole certificate or key file.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace carpool::proxy::tls {

inline constexpr std::size_t kMaxFile = std::size_t{16} << 20;

// Opens the file by open_to_read(). The Fault's detail is the path and the reason, also that the file exceeds
// kMaxFile. Its kind is `budget` for an error that does not describe the path.
Result<std::string> read_file(const std::string& path);

}  // namespace carpool::proxy::tls
