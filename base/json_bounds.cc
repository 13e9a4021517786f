#include "base/json_bounds.h"

#include <algorithm>

namespace carpool {

namespace {
// Returns the position after the string that begins at `at`, closing quote included.
std::size_t behind_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return at + 1;
}

std::string at_line(std::string_view json, std::size_t at) {
  const auto line = 1 + std::count(json.begin(), json.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return " (line " + std::to_string(line) + ")";
}
}  // namespace

std::string exceeded_bound(std::string_view json, const JsonBounds& bounds) {
  std::size_t depth = 0, values = 1;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') {
      at = behind_string(json, at) - 1;
    } else if (c == '[' || c == '{') {
      ++values;
      if (++depth > bounds.depth) {
        return "nests deeper than " + std::to_string(bounds.depth) + " levels" + at_line(json, at);
      }
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else if (c == ',' || c == ':') {
      ++values;
    }
    if (values > bounds.values) {
      return "has more than " + std::to_string(bounds.values) + " values" + at_line(json, at);
    }
  }
  return {};
}

}  // namespace carpool
