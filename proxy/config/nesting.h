// deeper_than(): limits the nesting of a TOML text before it is parsed. The parser recurses once per level, its trees
// are destroyed, copied and merged recursively, and tasks run on small stacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

// The deepest setting, [origin.pool.health_check] interval, is at level four.
inline constexpr unsigned kMaxLevels = 16;

// Returns the first place deeper than `most` levels, or nullopt if there is none before the first syntax error. Each
// part of a key or header, each array and each inline table is a level; an array of tables adds one more.
std::optional<Place> deeper_than(std::string_view toml, unsigned most);
// The error text for a place deeper than kMaxLevels.
std::string too_deep_text();

}  // namespace carpool::proxy::config
