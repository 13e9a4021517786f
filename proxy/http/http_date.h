// Dates in field values (RFC 9110 §5.6.7).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::http {

// Parses a date in any of the three formats that a recipient must accept; nullopt: it is in none.
std::optional<std::chrono::sys_seconds> parse_date(std::string_view text);

// Returns the preferred format: "Sun, 06 Nov 1994 08:49:37 GMT". The year is between 0 and 9999.
std::string date_text(WallTime time);

}  // namespace carpool::proxy::http
