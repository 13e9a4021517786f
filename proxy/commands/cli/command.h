// Command: the tables of subcommands and flags, each declared once. Requests to the admin endpoint, validation, help,
// shell completions and the manual page are derived from them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::cli {

using Words = std::span<const std::string_view>;

struct Operand {
  std::string_view name;  // empty if the command takes no operand
  bool optional = false;
  Words words = {};              // possible values; empty for any
  std::string_view query = {};   // query parameter for the operand; empty if it is part of the path
  std::string_view method = {};  // method of a request with the operand; empty for that of the command
  std::string_view next = {};    // a further operand, for the usage alone
};

struct Command {
  std::string_view name;
  std::string_view method;
  std::string_view path;  // {origin} is replaced
  Operand operand;
  std::string_view doc;
  Words legend = {};  // sentences, see legend_of()
};

struct Flag {
  std::string_view name, value;
  std::string_view commands;  // commands that accept the flag; empty for every command that queries an instance
  std::string_view query;     // query parameter for the flag; empty if it is not sent
  std::string_view doc;
  Words words = {};  // possible values; empty for any
  // Bounds of a value N; `most` 0: checked elsewhere. A TIME must be above zero if `least` is not 0.
  std::uint32_t least = 0, most = 0;
};

// Returns what the output means, for the command's own help and the manual page; empty if that is obvious.
std::string legend_of(const Command& command);
std::span<const Command> commands();
std::span<const Flag> flags();
const Command* find_command(std::string_view name);
const Flag* find_flag(std::string_view name);
bool takes(const Command& command, const Flag& flag);

// Returns the arguments shown in the usage: the operand, then each flag that only some commands accept.
std::vector<std::string> usage_of(const Command& command);
// Returns the description for a list with flags of other commands, such as "for top: print one frame and exit".
std::string doc_among_others(const Flag& flag);

}  // namespace carpool::proxy::cli
