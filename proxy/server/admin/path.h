// Splits a target's path into segments, each percent-decoded on its own, so that an encoded "/" never separates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::admin {

// Returns the path without query and without a trailing slash (except "/" itself).
std::string_view path_of(std::string_view target);
// Returns false if an escape is malformed or encodes a NUL. Such a query must be rejected as a whole.
bool query_is_well_encoded(std::string_view target);
// Returns the decoded value of a query parameter; empty if it is missing or malformed. "+" is not decoded to a space.
std::optional<std::string> query_value(std::string_view target, std::string_view name);
// Returns the first parameter of the query that `known` does not accept; empty if there is none.
template <class Known>
std::string_view unknown_parameter(std::string_view target, Known known) {
  const std::size_t mark = target.find('?');
  std::string_view query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  for (query = query.substr(0, query.find('#')); !query.empty();) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size() < query.size() ? pair.size() + 1 : query.size());
    const std::string_view name = pair.substr(0, pair.find('='));
    if (!name.empty() && !known(name)) return name;
  }
  return {};
}
// Returns the segments of a path from path_of(); empty if an escape is malformed or encodes a NUL.
std::optional<std::vector<std::string>> segments_of(std::string_view path);

}  // namespace carpool::proxy::admin
