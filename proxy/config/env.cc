// One pass from left to right: the value of a variable is not expanded again, so it cannot refer to another variable.
#include "proxy/config/env.h"

#include <cstdlib>

namespace carpool::proxy::config {
namespace {

constexpr std::size_t kLongestExpansion = std::size_t{64} * 1024;  // length limit of a text that variables made longer

bool name_byte(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return letter || (!first && c >= '0' && c <= '9');
}

// `inside` is the text between the braces. Appends its value to `out`. Returns an error text, or empty.
std::string expand_one(std::string_view inside, const Env& env, std::string& out) {
  std::size_t end = 0;
  while (end < inside.size() && name_byte(inside[end], end == 0)) ++end;
  const std::string_view name = inside.substr(0, end);
  const std::string_view rest = inside.substr(end);
  const bool otherwise = rest.starts_with(":-");
  const bool demanded = rest.starts_with(":?");
  if (name.empty() || !(rest.empty() || otherwise || demanded)) {
    return "`${" + std::string(inside) + "}` is not understood, expected ${NAME}, ${NAME:-default} or ${NAME:?message}";
  }
  const auto value = env(name);
  if (value && !(value->empty() && (otherwise || demanded))) {
    out += *value;
    return {};
  }
  if (otherwise) {
    out += rest.substr(2);
    return {};
  }
  const std::string variable = "the environment variable " + std::string(name);
  if (!demanded) return variable + " is not set, expected a value, or a default as in ${" + std::string(name) + ":-…}";
  return variable + " is not set: " + std::string(rest.size() > 2 ? rest.substr(2) : "expected a value");
}

}  // namespace

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
    if (std::string wrong = expand_one(rest.substr(at + 2, end - at - 2), env, out); !wrong.empty()) return wrong;
    rest.remove_prefix(end + 1);
    if (out.size() > kLongestExpansion) break;
  }
  out += rest;
  if (out.size() > kLongestExpansion && out.size() > text.size()) {
    too_long = true;
    return "expands to more than " + std::to_string(kLongestExpansion) + " bytes, expected at most that";
  }
  text = std::move(out);
  return {};
}

}  // namespace carpool::proxy::config
