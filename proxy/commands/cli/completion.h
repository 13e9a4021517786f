// Generates shell completions from the tables of commands and flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::cli {

std::optional<std::string> completion(std::string_view shell);  // bash, zsh, fish

}  // namespace carpool::proxy::cli
