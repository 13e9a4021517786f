// The subcommands: each declared once. What they ask of the admin endpoint, their help, the completions of the shells
// and the manual page all follow from this table.
#pragma once

#include <span>
#include <string_view>

namespace carpool::proxy::cli {

enum class Argument : unsigned char { none, origin };

struct Command {
  std::string_view name;
  std::string_view method;
  std::string_view path;  // {origin} is filled in
  Argument argument;
  std::string_view option;  // "--size N": goes along as a query
  std::string_view doc;
};

struct Flag {
  std::string_view name, value, doc;
};

std::span<const Command> commands();
std::span<const Flag> flags();
const Command* find_command(std::string_view name);

}  // namespace carpool::proxy::cli
