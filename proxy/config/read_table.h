// A TOML text as toml++'s table. Included by this directory's read_*.cc alone.
#pragma once

#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::config {

// The Fault gives the position at which the text is not TOML, or is nested too deeply.
Result<toml::table> read_table(std::string_view text);

}  // namespace carpool::proxy::config
