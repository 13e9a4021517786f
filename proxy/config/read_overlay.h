// overlay(): merges one configuration into another, as text. Wraps toml++ together with read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::config {

// Returns `base` changed by `over`: tables are merged key by key, an [[origin]] with the same uri is merged into that
// one and any other is appended; every other list and value replaces that of `base`. The Fault gives the position at
// which `over` (or `base`) is not TOML.
Result<std::string> overlay(std::string_view base, std::string_view over);

}  // namespace carpool::proxy::config
