// redacted(): masks the credentials in a request's target for logs and for printed configurations. Userinfo and the
// values of parameters of the query or the path whose names suggest secrets become "***"; for logs the result is
// truncated to 1 KiB.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carpool::proxy::http {

inline constexpr std::size_t kMaxTarget = 1024;

// Returns the target itself if there is nothing to mask, else a view of `scratch`. The result is not escaped. It is
// truncated to `most` bytes.
std::string_view redacted(std::string_view target, std::string& scratch, std::size_t most = kMaxTarget);
// Returns true if the query has a masked value, so that a printed target is not taken for the real one.
bool is_redacted(std::string_view target);

}  // namespace carpool::proxy::http
