// How deep a TOML text nests, told before its parser sees it: the parser recurses once a level, the trees that it makes
// are destroyed, copied and merged by recursion, and tasks run on small stacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

// The deepest setting, [origin.pool.health_check] interval, is four levels down.
inline constexpr unsigned kMostLevels = 16;

// The first place that lies more than `most` levels down. A level is a part of a key or of a header, an array or an
// inline table; an array of tables counts as one more. Nothing: there is none before the first error of syntax.
std::optional<Place> deeper_than(std::string_view toml, unsigned most);
// How a text is refused that has a place more than kMostLevels down.
std::string too_deep_text();

}  // namespace carpool::proxy::config
