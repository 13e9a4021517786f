// The command line, and everything that it can answer from the configuration alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "proxy/config/env.h"
#include "proxy/config/read.h"

namespace carpool::proxy::config {

enum class Command : std::uint8_t {
  run,
  demo,
  check,
  print_config,
  print_default_config,
  print_schema,
  health,
  version,
  help,
};

// ProgramFlag: a global flag, declared once: help, completions and the manual page are generated from the table.
struct ProgramFlag {
  std::string_view name, value, doc;
  std::optional<Command> command;  // none: --config, which goes with each
};
std::span<const ProgramFlag> program_flags();

struct Options {
  Command command = Command::run;
  std::string config;      // --config; empty: find_config() decides
  std::size_t digest = 0;  // of the bytes that the program's configuration was read from; 0: there was no file
};

// Options, or the sentence that says what is wrong with the command line (exit 1).
std::variant<Options, std::string> parse_options(int argc, const char* const* argv);

// Returns the path given by --config, else ./config.toml, else /etc/carpool/config.toml; empty: the built-in defaults.
std::string find_config(const Options& options);
// Reads what find_config() finds.
Reading load(const Options& options, const Env& env, std::size_t* digest = nullptr);
// Mistakes and warnings, one a line.
void report(const Reading& reading, std::ostream& out);

// The exit code of a command that needs nothing but the configuration: --check, --print-…, --version, --help.
// Nothing for the others: run, demo, health.
std::optional<int> answer(const Options& options, const Env& env, std::ostream& out, std::ostream& err);

std::string_view version();  // "0.1.0"

}  // namespace carpool::proxy::config
