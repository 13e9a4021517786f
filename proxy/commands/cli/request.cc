#include "proxy/commands/cli/request.h"

#include <algorithm>

#include "base/ascii.h"
#include "proxy/config/options.h"
#include "proxy/config/text.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::proxy::cli {
namespace {

std::string in_ticks(std::string_view word) {
  return "`" + std::string(word) + "`";
}

std::string see_help(const Command& command) {
  return "; see carpool " + std::string(command.name) + " --help";
}

std::string not_known(const Command& command, std::string_view word) {
  std::vector<std::string_view> known{"--help"};
  for (const Flag& flag : flags()) {
    if (takes(command, flag)) known.push_back(flag.name);
  }
  return in_ticks(word) + " is not known; " + config::did_you_mean(word, known, see_help(command).substr(2));
}

void note(Request& request, const Flag& flag, std::string value) {
  for (auto& [known, before] : request.given) {
    if (known == &flag) {
      before = std::move(value);
      return;
    }
  }
  request.given.emplace_back(&flag, std::move(value));
}

// Returns what a value that is not one of `words` should be, or an empty text.
std::string why_not_one_of(Words words, std::string_view value) {
  if (words.empty() || std::find(words.begin(), words.end(), value) != words.end()) return {};
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list.append(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ").append(words[i]);
  return list;
}

// Returns what the value of a flag should be, or an empty text if it is that. The instance checks values as well; a
// value that is wrong for every instance needs none.
std::string why_not_a_value(const Flag& flag, std::string_view value) {
  if (flag.value == "N" && flag.most != 0) {
    const auto number = number_in<std::uint32_t>(value);
    const bool fits = number && *number >= flag.least && *number <= flag.most;
    return fits ? "" : "a number from " + std::to_string(flag.least) + " to " + std::to_string(flag.most);
  }
  if (flag.value == "TIME") {
    const auto time = config::parse_duration(value);
    const bool fits = time && (flag.least == 0 || *time > Duration::zero());
    return fits ? ""
                : std::string("a time") + (flag.least == 0 ? "" : " above zero") + " such as 250ms, 30s, 10m or 1h";
  }
  if (flag.name == "--module" && log::known_module(value)) return {};  // under its earlier name
  return why_not_one_of(flag.words, value);
}

// Parses `--name VALUE`, `--name=VALUE` or `--name` at `at`, and sets `at` to its last word.
std::string parse_flag(Request& request, int& at, int argc, const char* const* argv) {
  const std::string_view word = argv[at];
  const std::size_t equals = std::min(word.find('='), word.size());
  const bool joined = equals != word.size();
  const Flag* const flag = find_flag(word.substr(0, equals));
  if (flag == nullptr) return not_known(*request.command, word.substr(0, equals));
  if (!takes(*request.command, *flag)) {
    return in_ticks(flag->name) + " is not for " + std::string(request.command->name) + see_help(*request.command);
  }
  if (flag->value.empty()) {
    if (joined) return in_ticks(flag->name) + " takes no value";
    note(request, *flag, "1");
    return {};
  }
  std::string value;
  if (joined) {
    value = word.substr(equals + 1);
  } else if (at + 1 < argc) {
    value = argv[++at];
  }
  if (value.empty()) return in_ticks(flag->name) + " needs a value: " + std::string(flag->value);
  if (std::string expected = why_not_a_value(*flag, value); !expected.empty())
    return in_ticks(flag->name) + ": " + in_ticks(value) + " is not " + expected;
  note(request, *flag, std::move(value));
  return {};
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else {
      append_hex(out += '%', c, kUpperHex);
    }
  }
  return out;
}

bool sets(const Request& request) {
  return !request.command->operand.method.empty() && !request.operand.empty();
}

}  // namespace

std::string Request::value(std::string_view flag) const {
  for (const auto& [known, text] : given) {
    if (known->name == flag) return text;
  }
  return {};
}

std::string_view first_word(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-')) return word;
    const Flag* const flag = find_flag(word);
    if (flag != nullptr && !flag->value.empty()) ++i;
  }
  return {};
}

bool begins_with_unknown_flag(int argc, const char* const* argv) {
  const auto own = config::program_flags();
  for (int i = 1; i < argc && argv[i][0] == '-'; ++i) {
    const std::string_view word(argv[i]), name = word.substr(0, word.find('='));
    const Flag* const flag = find_flag(name);
    const bool known = flag != nullptr || name == "-h" ||
                       std::any_of(own.begin(), own.end(), [&](const auto& one) { return one.name == name; });
    if (!known) return true;
    if (flag != nullptr && !flag->value.empty() && name.size() == word.size()) ++i;
  }
  return false;
}

const Command* command_of(int argc, const char* const* argv) {
  return find_command(first_word(argc, argv));
}

std::string parse(Request& request, int argc, const char* const* argv) {
  bool named = false;  // the command itself was found
  std::string wrong;   // of the operand: --help behind it prevails
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      request.help = true;
    } else if (word.starts_with('-')) {
      if (std::string error = parse_flag(request, i, argc, argv); !error.empty()) return error;
    } else if (!named) {
      named = true;
    } else if (request.operand.empty() && !request.command->operand.name.empty()) {
      request.operand = word;
      const Operand& operand = request.command->operand;
      if (const std::string expected = why_not_one_of(operand.words, word); !expected.empty())
        wrong = std::string(operand.name) + ": " + in_ticks(word) + " is not " + expected;
    } else {
      return in_ticks(word) + " is an unexpected argument";
    }
  }
  if (request.help) return {};
  if (wrong.empty() && request.has("--module") && request.operand.empty()) return "`--module` requires a LEVEL";
  return wrong;
}

std::string_view method_of(const Request& request) {
  return sets(request) ? request.command->operand.method : request.command->method;
}

std::string target_of(const Request& request, std::string_view origin) {
  std::string target(request.command->path);
  if (const std::size_t at = target.find("{origin}"); at != std::string::npos) {
    target.replace(at, 8, percent_encoded(origin));
  }
  char between = '?';
  const auto add = [&](std::string_view name, std::string_view value) {
    target.append(1, std::exchange(between, '&')).append(name).append("=").append(percent_encoded(value));
  };
  const Operand& operand = request.command->operand;
  if (!operand.query.empty() && !request.operand.empty()) {
    add(operand.query, operand.name == "ORIGIN" ? origin : request.operand);
  }
  for (const auto& [flag, value] : request.given) {
    if (!flag->query.empty()) add(flag->query, value);
  }
  return target;
}

}  // namespace carpool::proxy::cli
