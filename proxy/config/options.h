// The command line, and the commands that need nothing but the configuration.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

// ProgramFlag: a global flag. The table of flags is the source of the help, the completions and the manual page.
struct ProgramFlag {
  std::string_view name, value, doc;
  std::optional<Command> command;  // nullopt: --config, which may accompany each of the others
};
std::span<const ProgramFlag> program_flags();

struct Options {
  Command command = Command::run;
  std::string config;                   // --config; empty: find_config() decides
  void (*check)(Reading&) = nullptr;    // a check that needs more than this component; load() calls it
  void (*locate)(Reading&) = nullptr;   // likewise, if the start failed: finds the lines of files that cannot be used
  std::vector<std::string> warnings{};  // of the reading, for the log of the program that starts
  std::size_t digest = 0;               // hash of the configuration file's bytes; 0: there was no file
};

// Returns the options, or an error text if the command line is invalid (exit code 1).
std::variant<Options, std::string> parse_options(int argc, const char* const* argv);

// Returns the path of the configuration (find_config.h); empty: no file, defaults.
std::string find_config(const Options& options);
// Reads the file that find_config() returns.
Reading load(const Options& options, const Env& env, std::size_t* digest = nullptr);
// Returns true if the file could be read and no error is in [admin] or [metrics], so that a command reaches the running
// instance although the instance would refuse the file.
bool names_instance(const Reading& reading);
// Prints warnings and errors, one per line.
void report(const Reading& reading, std::ostream& out);

// Runs a command that needs nothing but the configuration (--check, --print-…) and returns its exit code;
// nullopt for the others (run, demo, health, version).
std::optional<int> run_command(const Options& options, const Env& env, std::ostream& out, std::ostream& err);

std::string_view version();  // "0.1.0"

}  // namespace carpool::proxy::config
