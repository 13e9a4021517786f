#include "proxy/config/options.h"

#include <array>
#include <ostream>
#include <vector>

#include "proxy/config/exit_code.h"
#include "proxy/config/find_config.h"
#include "proxy/config/print.h"
#include "proxy/config/schema.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::array<ProgramFlag, 9> kFlags{{
    {"--config", "FILE",
     "configuration file; default: ./carpool.toml, ./config.toml, /etc/carpool/config.toml, built-in defaults",
     std::nullopt},
    {"--check", "", "check the configuration and print every error, or ok", Command::check},
    {"--print-config", "", "print the effective configuration with all defaults", Command::print_config},
    {"--print-default-config", "", "print a commented file with the usual settings and their defaults",
     Command::print_default_config},
    {"--print-schema", "", "print the JSON Schema of the configuration", Command::print_schema},
    {"--health", "", "exit with 0 if the running instance is ready", Command::health},
    {"--demo", "", "start a demo with an embedded origin and some traffic", Command::demo},
    {"--version", "", "print the version", Command::version},
    {"--help", "", "print this help", Command::help},
}};
constexpr std::string_view kConfig = "--config";

const ProgramFlag* find_flag(std::string_view word) {
  if (word == "-h") word = "--help";
  for (const ProgramFlag& flag : kFlags) {
    if (flag.name == word) return &flag;
  }
  return nullptr;
}

std::string in_ticks(std::string_view word) {
  return '`' + std::string(word) + '`';
}

std::string not_known(std::string_view word) {
  std::vector<std::string_view> known;
  known.reserve(std::size(kFlags));
  for (const ProgramFlag& flag : kFlags) known.push_back(flag.name);
  return in_ticks(word) + " is not known; " + did_you_mean(word, known, "see carpool --help");
}

std::string set_config(Options& options, std::string_view file) {
  if (file.empty()) return "--config needs a file";
  if (!options.config.empty()) return "--config is given twice";
  options.config = file;
  return {};
}

std::string set_command(Options& options, const ProgramFlag& flag, std::string_view& chosen) {
  if (!chosen.empty() && chosen != flag.name) {
    return in_ticks(chosen) + " and " + in_ticks(flag.name) + " cannot be combined";
  }
  chosen = flag.name;
  options.command = *flag.command;
  return {};
}

int check_only(const Options& options, const Env& env, std::ostream& out, std::ostream& err) {
  const Reading reading = load(options, env);
  report(reading, err);
  if (reading) out << "ok\n";
  return reading ? kExitClean : kExitConfiguration;
}

int print_effective(const Options& options, const Env& env, std::ostream& out, std::ostream& err) {
  const Reading reading = load(options, env);
  report(reading, err);
  if (reading) out << print_config(reading.config);
  return reading ? kExitClean : kExitConfiguration;
}

int print(std::ostream& out, std::string_view text) {
  out << text;
  return kExitClean;
}

}  // namespace

std::variant<Options, std::string> parse_options(int argc, const char* const* argv) {
  Options options;
  std::string_view chosen;  // the flag that selected the command
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string error;
    if (word == kConfig) {
      error = set_config(options, i + 1 < argc ? argv[++i] : "");
    } else if (word.starts_with("--config=")) {
      error = set_config(options, word.substr(kConfig.size() + 1));
    } else if (const ProgramFlag* flag = find_flag(word)) {
      error = set_command(options, *flag, chosen);
    } else {
      error = not_known(word);
    }
    if (!error.empty()) return error;
  }
  return options;
}

std::span<const ProgramFlag> program_flags() {
  return kFlags;
}

std::string find_config(const Options& options) {
  return choose_config_file(options.config).path;
}

Reading load(const Options& options, const Env& env, std::size_t* digest) {
  const auto [path, warning] = choose_config_file(options.config);
  Reading reading = path.empty() ? read_text("", "built-in defaults", env) : read_file(path, env, digest);
  if (options.check != nullptr) options.check(reading);
  sort_by_place(reading.errors);
  if (warning) reading.warnings.insert(reading.warnings.begin(), *warning);
  return reading;
}

bool names_instance(const Reading& reading) {
  for (const ConfigError& error : reading.errors) {
    const std::string_view table = std::string_view(error.key).substr(0, error.key.find_first_of(".["));
    const bool known = find_section(table) != nullptr || find_setting(*find_section(""), table) != nullptr;
    if (!known) return false;  // perhaps one of those below, misspelled
    for (const std::string_view needed : {"file", "syntax", "admin", "metrics"}) {
      if (table == needed) return false;
    }
  }
  return true;
}

void report(const Reading& reading, std::ostream& out) {
  for (const ConfigError& warning : reading.warnings) out << "warning: " << warning.line_text() << '\n';
  for (const ConfigError& error : reading.errors) out << error.line_text() << '\n';
}

std::optional<int> run_command(const Options& options, const Env& env, std::ostream& out, std::ostream& err) {
  switch (options.command) {
    case Command::check:
      return check_only(options, env, out, err);
    case Command::print_config:
      return print_effective(options, env, out, err);
    case Command::print_default_config:
      return print(out, print_default_config());
    case Command::print_schema:
      return print(out, print_schema());
    case Command::help:
    case Command::version:
    case Command::run:
    case Command::demo:
    case Command::health:
      break;
  }
  return std::nullopt;
}

std::string_view version() {
  return CARPOOL_VERSION;
}

}  // namespace carpool::proxy::config
