// Dates in field values (RFC 9110 §5.6.7).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace carpool::proxy::http {

// Parses a date in any of the three formats that a recipient must accept; nullopt: it is in none.
std::optional<std::chrono::sys_seconds> parse_date(std::string_view text);

inline constexpr std::size_t kDateSize = 29;  // of "Sun, 06 Nov 1994 08:49:37 GMT"

// Writes the preferred format. The year is between 0 and 9999.
void write_date(std::span<char, kDateSize> out, std::chrono::sys_seconds time);
std::string date_text(std::chrono::system_clock::time_point time);

}  // namespace carpool::proxy::http
