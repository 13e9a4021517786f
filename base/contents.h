// contents(): reads a whole file up to a limit, so that a device or a growing file is an error and does not use up
// memory.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace carpool {

// Returns the bytes of the file at `path`, which open_to_read() opens. The Fault is that function's, or file_fault();
// a file longer than `most` bytes is body_too_large.
Result<std::string> contents(const std::string& path, std::size_t most);
// The same for a file that the caller opens; if that failed, its Fault is returned.
Result<std::string> contents(const Result<Fd>& opened, std::size_t most);
// Reads to the end of the file or of `memory`, which has the only copy of the bytes. Returns their number, or nullopt
// with the error in errno.
std::optional<std::size_t> read_into(int file, std::span<char> memory);

// A hash to compare contents; only valid within this process.
inline std::size_t digest_of(std::string_view bytes) {
  return std::hash<std::string_view>{}(bytes);
}

}  // namespace carpool
