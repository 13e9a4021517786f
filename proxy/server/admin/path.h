// A target's path in pieces, each percent-decoded on its own, so that an encoded "/" never divides.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::admin {

// Without query, and without a trailing slash (but "/" itself).
std::string_view path_of(std::string_view target);
// False: an escape in it is broken or hides a NUL. No parameter of such a query may be overlooked.
bool query_is_well_encoded(std::string_view target);
// The decoded value of the query's parameter; nothing: it is not there, or not well encoded. "+" is a plus.
std::optional<std::string> query_value(std::string_view target, std::string_view name);
// Segments of such a path; nothing when an escape is broken or hides a NUL.
std::optional<std::vector<std::string>> segments_of(std::string_view path);

}  // namespace carpool::proxy::admin
