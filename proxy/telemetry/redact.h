// Redacts a request's target for logs: keeps the path and the query without credentials. Userinfo and the values of
// parameters whose names suggest secrets become "***"; the result is cut at 1 KiB.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::log {

inline constexpr std::size_t kMaxTarget = 1024;

// The target itself, when there is nothing to hide, else a text in `scratch`. Not escaped.
std::string_view redacted(std::string_view target, std::string& scratch);

}  // namespace carpool::proxy::log
