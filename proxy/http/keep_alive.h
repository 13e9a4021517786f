// The Keep-Alive field of a response (RFC 2068 §19.7.1.1, alive in practice): how long the origin means to let the
// connection rest.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::http {

// `timeout` of "timeout=5, max=100"; nothing where it is absent or no number. At most a day.
std::optional<Duration> keep_alive_timeout(std::string_view value);

}  // namespace carpool::proxy::http
