// Parses the Keep-Alive response field (RFC 2068 §19.7.1.1, still in use): how long the origin keeps the connection
// open while it is idle.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::http {

// Returns `timeout` of "timeout=5, max=100", at most a day; nullopt if it is absent or not a number.
std::optional<Duration> keep_alive_timeout(std::string_view value);

}  // namespace carpool::proxy::http
