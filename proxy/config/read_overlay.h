// One configuration laid over another, as text. Wraps toml++ together with read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::config {

// `over` on top of `base`: tables are merged key by key, an [[origin]] with the same uri is merged into that one and
// any other is appended; every other list and value replaces. The Fault names the place where `over` (or `base`) is no
// TOML.
Result<std::string> overlay(std::string_view base, std::string_view over);

}  // namespace carpool::proxy::config
