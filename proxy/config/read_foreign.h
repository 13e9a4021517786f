// foreign(): recognizes the configuration of another program.
#pragma once

#include <string_view>

namespace carpool::proxy::config {

// Returns true if the text is TOML, is not empty, and no key or table at its top is one of carpool's. A text that is no
// TOML counts as carpool's, so that its errors are reported.
bool foreign(std::string_view toml);

}  // namespace carpool::proxy::config
