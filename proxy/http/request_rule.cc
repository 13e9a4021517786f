#include "proxy/http/request_rule.h"

#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "proxy/http/char_class.h"

namespace carpool::proxy::http {

namespace {

// Characters that normalization (NFKC) or the conversion to another character set turns into a dot, slash, backslash,
// percent sign or semicolon, or into text with one of them.
constexpr std::u32string_view kLookalikes =
    U"\u00A5\u037E\u2024\u2025\u2026\u2044\u20A9\u2100\u2101\u2105\u2106\u2215\u2216\uFE14\uFE19\uFE30\uFE52\uFE54"
    U"\uFE68"
    U"\uFE6A\uFF05\uFF0E\uFF0F\uFF1B\uFF3C";

// Reads one byte of a path, encoded or not, from its front. Returns -1 for an invalid or ambiguous one.
int read_byte(std::string_view& path) {
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

// Reads one character of a path. An origin may drop or replace bytes that are not UTF-8, and may decode the overlong
// form of a dot or slash, so they are ambiguous.
int read_character(std::string_view& path) {
  const int lead = read_byte(path);
  if (lead < 0x80) return lead;
  std::array<char, 4> bytes{static_cast<char>(lead)};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    const int byte = path.empty() ? -1 : read_byte(path);
    if (byte < 0x80) return -1;
    bytes[i] = static_cast<char>(byte);
  }
  const std::string_view character(bytes.data(), size);
  if (first_character(character) != size) return -1;
  const char32_t c = code_point(character);
  return kLookalikes.find(c) != std::u32string_view::npos ? -1 : static_cast<int>(c);
}

// Segment: what an origin may take for a segment of dots: it may drop trailing dots and spaces, and some characters
// outside ASCII, and may take an encoded `?` or `#` for the end of the path.
class Segment {
 public:
  void add(int c) {
    parameters_ = parameters_ || c == ';' || c == '?' || c == '#';
    if (parameters_ || c >= 0x80) return;
    dots_ = dots_ || c == '.';
    others_ = others_ || (c != '.' && c != ' ');
  }
  bool dots_alone() const { return dots_ && !others_; }

 private:
  bool parameters_ = false;  // those that follow, or a query, are not part of its name
  bool dots_ = false, others_ = false;
};

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
  Segment segment;
  while (!path.empty()) {
    const bool slash = path.front() == '/';
    const int c = read_character(path);
    if (c < 0) return false;
    if (!slash) segment.add(c);
    if (!slash && !path.empty()) continue;
    if (segment.dots_alone()) return false;
    segment = {};
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
