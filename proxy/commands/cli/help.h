// Generates the help of the program and the manual pages from the tables of commands, flags and settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::cli {

std::string program_help();
std::optional<std::string> manual(std::string_view page);  // carpool, carpool.toml

}  // namespace carpool::proxy::cli
