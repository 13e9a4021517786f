// What a command line asks: a command of the table, its operand and its flags, each of them one that the command takes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/commands/cli/command.h"

namespace carpool::proxy::cli {

struct Request {
  const Command* command = nullptr;
  std::string operand;                                     // empty: none
  std::vector<std::pair<const Flag*, std::string>> given;  // each flag once; "1": one without a value
  bool help = false;

  std::string value(std::string_view flag) const;  // empty: not given
  bool has(std::string_view flag) const { return !value(flag).empty(); }
};

// The first word that is no flag and no flag's value; null: the line has no command.
const Command* command_of(int argc, const char* const* argv);

// Of a line whose command is `request.command`; what is wrong with it, or nothing.
std::string parse(Request& request, int argc, const char* const* argv);

// What the admin endpoint is asked, once the origin is known.
std::string_view method_of(const Request& request);
std::string target_of(const Request& request, std::string_view origin);

}  // namespace carpool::proxy::cli
