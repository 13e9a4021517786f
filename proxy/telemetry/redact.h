// redacted(): masks the credentials in a request's target for logs. Userinfo and the values of parameters whose names
// suggest secrets become "***"; the result is truncated to 1 KiB.
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::log {

inline constexpr std::size_t kMaxTarget = 1024;

// Returns the target itself if there is nothing to mask, else a view of `scratch`. The result is not escaped.
std::string_view redacted(std::string_view target, std::string& scratch);

}  // namespace carpool::proxy::log
