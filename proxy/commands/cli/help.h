// Generates the help of the program and the manual pages from the tables of commands, flags and settings.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy::cli {

std::string program_help();
// Appends `name` and, beside it, `doc`, wrapped for a terminal of 100 columns.
void describe(std::string& out, std::string_view name, std::string_view doc, std::size_t column);
std::optional<std::string> manual(std::string_view page);  // carpool, carpool.toml

}  // namespace carpool::proxy::cli
