// A target's path in pieces, each percent-decoded on its own, so that an encoded "/" never divides.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::admin {

// Without query, and without a trailing slash (but "/" itself).
std::string_view path_of(std::string_view target);
// Segments of such a path; nothing when an escape is broken or hides a NUL.
std::optional<std::vector<std::string>> segments_of(std::string_view path);

}  // namespace carpool::proxy::admin
