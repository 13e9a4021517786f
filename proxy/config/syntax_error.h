// syntax_error_text(): what is wrong in a text that is not TOML, in the words of its writer instead of the parser's.
#pragma once

#include <string>
#include <string_view>

#include "proxy/config/config_error.h"

namespace carpool::proxy::config {

// `description`: the parser's; `at`: where it stopped. The result names keys and tables but no value, which may be a
// secret.
std::string syntax_error_text(std::string_view toml, Place at, std::string_view description);

}  // namespace carpool::proxy::config
