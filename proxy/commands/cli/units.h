// Formats values for people: "350 ms", "2.5 h", "1.25 MiB", "12.3/s". `--json` prints the plain numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace carpool::proxy::cli {

enum class Unit : std::uint8_t { none, seconds, bytes, per_second };

std::string with_unit(double value, Unit unit);

// Titled: the title and the unit in the name of a member: "age_seconds" is the title "age" in seconds.
struct Titled {
  std::string_view title;
  Unit unit = Unit::none;
};
Titled titled(std::string_view name);

// Returns true for a number, one with a unit, and "-". A column of such texts is right-aligned.
bool numeric(std::string_view text);

}  // namespace carpool::proxy::cli
