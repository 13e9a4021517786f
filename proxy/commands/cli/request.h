// Request: a parsed command line: a command of the table, its operand, and flags that the command accepts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/commands/cli/command.h"

namespace carpool::proxy::cli {

struct Request {
  const Command* command = nullptr;
  std::string operand;                                     // empty if none
  std::vector<std::pair<const Flag*, std::string>> given;  // without duplicates; "1" for a flag without a value
  bool help = false;

  std::string value(std::string_view flag) const;  // empty if not given
  bool has(std::string_view flag) const { return !value(flag).empty(); }
};

// Returns the command, the first word that is neither a flag nor a flag's value; nullptr if there is none.
const Command* command_of(int argc, const char* const* argv);

// Returns that word, even if it is not a command; empty if there is none.
std::string_view first_word(int argc, const char* const* argv);

// Returns true if a flag before that word is one of neither the commands nor the program, so the word may be its value.
bool begins_with_unknown_flag(int argc, const char* const* argv);

// Parses the line of `request.command`. Returns an error message, or an empty string.
std::string parse(Request& request, int argc, const char* const* argv);

// Return the method and target for the admin endpoint, once the origin is known.
std::string_view method_of(const Request& request);
std::string target_of(const Request& request, std::string_view origin);

}  // namespace carpool::proxy::cli
