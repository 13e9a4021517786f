// The path and the query of a target. Segments are percent-decoded one by one, so that an encoded "/" never separates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carpool::proxy::admin {

// Returns the path without query and without a trailing slash (except "/" itself).
std::string_view path_of(std::string_view target);
// Returns false if an escape is malformed or encodes a NUL. Such a query must be rejected as a whole.
bool query_is_well_encoded(std::string_view target);
// Returns the decoded value of a query parameter; empty if it is missing or malformed. "+" is not decoded to a space.
std::optional<std::string> query_value(std::string_view target, std::string_view name);
// Returns the names and values of the query's parameters, as they are written.
std::vector<std::pair<std::string_view, std::string_view>> parameters_of(std::string_view target);
// Returns the segments of a path from path_of(); empty if an escape is malformed or encodes a NUL.
std::optional<std::vector<std::string>> segments_of(std::string_view path);

}  // namespace carpool::proxy::admin
