// One pass from left to right: the value of a variable is not expanded again, so it cannot refer to another variable.
#include "proxy/config/env.h"

#include <cstdlib>

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kMaxExpansion = std::size_t{64} * 1024;  // length limit of a text that variables made longer

bool name_byte(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (!first && c >= '0' && c <= '9');
}

// The parts of a text between the braces: "NAME", and nothing, ":-default" or ":?message".
struct Variable {
  explicit Variable(std::string_view inside) {
    std::size_t end = 0;
    while (end < inside.size() && name_byte(inside[end], end == 0)) ++end;
    name = inside.substr(0, end);
    rest = inside.substr(end);
  }
  bool has_default() const { return rest.starts_with(":-"); }
  bool has_message() const { return rest.starts_with(":?"); }
  bool valid() const { return !name.empty() && (rest.empty() || has_default() || has_message()); }

  std::string_view name, rest;
};

// `inside` is the text between the braces. Appends its value to `out`. Returns an error text, or empty.
std::string expand_one(std::string_view inside, const Env& env, std::string& out) {
  const Variable variable(inside);
  const std::string_view rest = variable.rest;
  const bool has_default = variable.has_default(), has_message = variable.has_message();
  if (!variable.valid()) {
    return "`${" + std::string(inside) + "}` is not understood, expected ${NAME}, ${NAME:-default} or ${NAME:?message}";
  }
  const auto value = env(variable.name);
  if (value && !(value->empty() && (has_default || has_message))) {
    out += *value;
    return {};
  }
  if (has_default) {
    out += rest.substr(2);
    return {};
  }
  const std::string name(variable.name), subject = "the environment variable " + name;
  if (!has_message) return subject + " is not set, expected a value, or a default as in ${" + name + ":-…}";
  return subject + " is not set: " + std::string(rest.size() > 2 ? rest.substr(2) : "expected a value");
}

}  // namespace

bool depends_on_environment(std::string_view text) {
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
    const std::size_t close = text.find('}', at);
    if (close == std::string_view::npos || (at > 0 && text[at - 1] == '$')) continue;
    const Variable variable(text.substr(at + 2, close - at - 2));
    if (variable.valid() && (!variable.has_default() || variable.rest.size() == 2)) return true;
  }
  return false;
}

Env process_env() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string expand(std::string& text, const Env& env, bool& too_long) {
  std::string out;
  std::string_view rest = text;
  for (;;) {
    const std::size_t at = rest.find("${");
    if (at == std::string_view::npos) break;
    out += rest.substr(0, at);
    if (at > 0 && rest[at - 1] == '$') {  // $${ is an escaped ${
      out += '{';
      rest.remove_prefix(at + 2);
      continue;
    }
    const std::size_t end = rest.find('}', at);
    if (end == std::string_view::npos) return "`${` has no closing brace (write $${ for a plain ${)";
    if (std::string error = expand_one(rest.substr(at + 2, end - at - 2), env, out); !error.empty()) return error;
    rest.remove_prefix(end + 1);
    if (out.size() > kMaxExpansion) break;
  }
  out += rest;
  if (out.size() > kMaxExpansion && out.size() > text.size()) {
    too_long = true;
    return "expands to more than " + std::to_string(kMaxExpansion) + " bytes, expected at most that";
  }
  text = std::move(out);
  return {};
}

}  // namespace carpool::proxy::config
