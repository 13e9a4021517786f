// The subcommands and their flags: each declared once. What they ask of the admin endpoint, what they refuse, their
// help, the completions of the shells and the manual page all follow from these tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy::cli {

using Words = std::span<const std::string_view>;

struct Operand {
  std::string_view name;  // empty: the command takes none
  bool optional = false;
  Words words;             // what it may be, for completions; empty: anything
  std::string_view query;  // given, it goes along as this parameter, and the question becomes a PUT
};

struct Command {
  std::string_view name;
  std::string_view method;
  std::string_view path;  // {origin} is filled in
  Operand operand;
  std::string_view doc;
};

struct Flag {
  std::string_view name, value;
  std::string_view commands;  // those that take it; empty: each that asks an instance
  std::string_view query;     // the parameter as which it goes along; empty: it does not
  std::string_view doc;
  Words words = {};  // what its value may be, for completions; empty: anything
};

std::span<const Command> commands();
std::span<const Flag> flags();
const Command* find_command(std::string_view name);
const Flag* find_flag(std::string_view name);
bool takes(const Command& command, const Flag& flag);

// What may follow its name, as usage shows it: the operand, then each flag that not all commands take.
std::vector<std::string> usage_of(const Command& command);
// Where it is shown beside those of other commands: "for top: one look".
std::string doc_among_others(const Flag& flag);

}  // namespace carpool::proxy::cli
