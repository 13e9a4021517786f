// Completions for shells and manual pages, made from the tables of commands and settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::cli {

std::optional<std::string> completion(std::string_view shell);  // bash, zsh, fish
std::optional<std::string> manual(std::string_view page);       // carpool, carpool.toml

}  // namespace carpool::proxy::cli
