// What of a request's target may stand in a log: the path and the query, but no credentials. Values of parameters whose
// names speak of secrets and userinfo become "***"; what is longer than 1 KiB is cut.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::log {

inline constexpr std::size_t kMaxTarget = 1024;

// The target itself, when there is nothing to hide, else a text in `scratch`. Not escaped.
std::string_view redacted(std::string_view target, std::string& scratch);

}  // namespace carpool::proxy::log
