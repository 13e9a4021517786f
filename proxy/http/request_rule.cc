#include "proxy/http/request_rule.h"

#include <utility>

#include "base/ascii.h"
#include "proxy/http/char_class.h"

namespace carpool::proxy::http {

namespace {

// Reads one character of a path, encoded or not, from its front. Returns -1 for an invalid or ambiguous one.
int take_char(std::string_view& path) {
  const char first = path.front();
  path.remove_prefix(1);
  if (first == '\\') return -1;
  if (first != '%') return static_cast<unsigned char>(first);
  if (path.size() < 2 || hex_value(path[0]) < 0 || hex_value(path[1]) < 0) return -1;
  const int byte = hex_value(path[0]) * 16 + hex_value(path[1]);
  path.remove_prefix(2);
  const bool changes_path = byte == '/' || byte == '\\' || byte == '%' || byte < 0x20 || byte == 0x7F;
  return changes_path ? -1 : byte;
}

std::string_view without_query(std::string_view path) {
  return path.substr(0, path.find('?'));
}

Fault bad_rule(const char* detail) {
  return {FaultKind::malformed_request, Side::self, detail};
}

}  // namespace

bool unambiguous_path(std::string_view path) {
  path = without_query(path);
  if (!path.starts_with('/')) return false;
  std::size_t length = 0;  // of the current segment, up to its parameters
  bool dots = true;        // it has nothing but dots
  bool parameters = false;
  while (!path.empty()) {
    const bool slash = path.front() == '/';
    const int c = take_char(path);
    if (c < 0) return false;
    if (!slash) {
      parameters = parameters || c == ';';
      length += parameters ? 0 : 1;
      dots = dots && (parameters || c == '.');
    }
    if (!slash && !path.empty()) continue;
    if (dots && (length == 1 || length == 2)) return false;
    length = 0;
    dots = true;
    parameters = false;
  }
  return true;
}

Result<RequestRule> RequestRule::parse(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return bad_rule("has no space between a method and a path");
  const std::string_view method = text.substr(0, space);
  std::string_view path = text.substr(space + 1);
  if (method.empty() || prefix_of(method, kToken).size() != method.size()) return bad_rule("begins with no method");
  if (method == "CONNECT") return bad_rule("names CONNECT, which has no path");
  const bool prefix = path.ends_with('*');
  if (prefix) path.remove_suffix(1);
  if (path.find_first_of("*?#") != std::string_view::npos) return bad_rule("has `*`, `?` or `#` inside the path");
  if (prefix_of(path, kTarget).size() != path.size()) return bad_rule("has white space or a control character");
  if (!unambiguous_path(path)) return bad_rule("has a path that an origin may take for another one");
  return RequestRule(method, path, prefix);
}

bool RequestRule::matches(std::string_view method, std::string_view path) const {
  if (method_ != "*" && method != method_) return false;
  path = without_query(path);
  if (path.empty()) path = "/";
  if (!unambiguous_path(path)) return false;
  return prefix_ ? path.starts_with(path_) : path == path_;
}

}  // namespace carpool::proxy::http
