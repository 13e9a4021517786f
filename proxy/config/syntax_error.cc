#include "proxy/config/syntax_error.h"

#include <algorithm>
#include <array>
#include <optional>

#include "proxy/config/schema.h"
#include "proxy/config/syntax_hint.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view without_space(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool contains_one_of(std::string_view text, const std::array<std::string_view, 4>& all) {
  return std::any_of(all.begin(), all.end(), [text](std::string_view one) { return has(text, one); });
}

// Returns the key that begins the line; empty if none does.
std::string_view key_of(std::string_view line) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return line.substr(0, static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), bare) - line.begin()));
}

// Returns true if the line sets the key `name`, or one below it.
bool sets(std::string_view line, std::string_view name) {
  line = without_space(line);
  if (!line.starts_with(name) || line.size() == name.size()) return false;
  return std::string_view(". \t=").find(line[name.size()]) != std::string_view::npos;
}

std::string_view name_in_header(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of("[ "), line.size()));
  return key_of(line);
}

// Returns " (line 3)": the line above that begins the table, or else the first that defines a part of it, or the last
// that sets the key; empty if none does.
std::string place_above(std::string_view toml, unsigned below, std::string_view name, bool table) {
  unsigned whole = 0, part = 0;
  for (unsigned number = 1; number < below; ++number) {
    const std::string_view line = without_space(toml.substr(0, toml.find('\n')));
    if (table && line.starts_with('[')) {
      if (name_in_header(line) == name) whole = number;
      if (part == 0 && sets(std::string(name_in_header(line)) + '=', name)) part = number;
    } else if (sets(line, name) && (part == 0 || !table)) {
      part = number;
    }
    toml.remove_prefix(std::min(toml.find('\n'), toml.size() - 1) + 1);
  }
  const unsigned found = whole != 0 ? whole : part;
  return found == 0 ? std::string() : " (line " + std::to_string(found) + ')';
}

std::string ticked(std::string_view text) {
  return '`' + visible(text) + '`';
}

// Returns true for a key of the schema. Any other word may be a secret that is not where it belongs.
bool known(std::string_view key) {
  const std::string_view last = key.substr(key.rfind('.') + 1);
  return std::any_of(sections().begin(), sections().end(), [last](const Section& section) {
    return find_setting(section, last) != nullptr || section.path.substr(section.path.rfind('.') + 1) == last;
  });
}
std::string named(std::string_view key) {
  return known(key) ? ticked(key) : "a key";
}
std::string assignment_of(std::string_view key) {
  return ", expected " + (known(key) ? std::string(key) : "key") + " = …";
}

// Returns the text of an error about a key or a table that is defined twice.
std::optional<std::string> twice(std::string_view toml, Place at, std::string_view line, std::string_view description) {
  constexpr std::string_view kTwice = "cannot redefine existing ";
  if (!has(description, kTwice)) return std::nullopt;
  if (!line.starts_with('[')) {
    const std::string_view key = key_of(line);
    return named(key) + " is set already" + place_above(toml, at.line, key, false) + ", expected each key once";
  }
  const std::string_view name = name_in_header(line);
  const std::string above = place_above(toml, at.line, name, true);
  if (has(description, "as array-of-tables")) {
    return '[' + visible(name) + "] or a part of it is above its [[" + visible(name) + "]]" + above +
           ", expected below";
  }
  if (has(description, "existing array")) {
    return '[' + visible(name) + "] is a list of tables" + above + ", expected [[" + visible(name) + "]]";
  }
  return '[' + visible(name) + "] is there already" + above + ", expected all keys of the table under one header";
}

// Returns the text of an error that the syntax of another format causes.
std::optional<std::string> of_another_format(std::string_view line, std::string_view description) {
  if (line.starts_with(';') || line.starts_with("//"))
    return "begins with " + ticked(line.substr(0, line[0] == ';' ? 1 : 2)) + ", expected # before a comment";
  if (line.starts_with('{')) return "is JSON, expected tables and keys of TOML, as in [pool] and size = 64";
  const std::string_view key = key_of(line);
  const std::string_view behind = without_space(line.substr(key.size()));
  if (!key.empty() && behind == ":") {
    return named(key) + " is followed by `:`, expected a table [" + (known(key) ? std::string(key) : "table") + ']';
  }
  if (!key.empty() && behind.starts_with(':')) return named(key) + " is followed by `:`" + assignment_of(key);
  if (contains_one_of(line, {"\xe2\x80\x9c", "\xe2\x80\x9d", "\xe2\x80\x98", "\xe2\x80\x99"})) {
    return "has typographic quotes, expected \"…\"";
  }
  if (has(description, "invalid utf-8")) return "has a byte that is not UTF-8, expected a file in UTF-8";
  if (has(description, "after '\\r'")) return "has a line that ends with CR alone, expected LF or CR LF";
  return std::nullopt;
}

// Returns the text of an error in a header, or around the value of a key.
std::optional<std::string> missing(std::string_view line, std::string_view description) {
  if (has(description, "table header: expected ']'"))
    return "the header has no closing ], expected [table] or [[table]]";
  if (has(description, "table header: expected a comment")) {
    return "the header is followed by other text, expected [table] or [[table]] alone on its line";
  }
  if (has(description, "control characters other than TAB") || has(description, "string: encountered end-of-file")) {
    return "a text has no closing quote, expected one on the same line";
  }
  if (has(description, "parsing array:")) {
    return "a list has no closing ], or no comma between two items, expected [a, b]";
  }
  const std::string_view key = key_of(line);
  if (key.empty()) return std::nullopt;
  if (has(description, "expected '='")) return named(key) + " is followed by no =" + assignment_of(key);
  const std::string_view value = without_space(line.substr(std::min(line.find('='), line.size() - 1) + 1));
  if (value.empty() || value.starts_with('#')) return named(key) + " has no value" + assignment_of(key);
  if (value.starts_with("${")) return named(key) + " has a variable without quotes, expected \"${…}\"";
  if (has(description, "inline table:")) return named(key) + " has no closing }, expected it on the same line";
  if (has(description, "comment or whitespace, saw") || has(description, "expected digit, saw")) {
    return named(key) + " has other text behind its value, expected one key and one value on each line";
  }
  if (has(description, "not representable")) return named(key) + " is too large, expected an integer below 2^63";
  return std::nullopt;
}

}  // namespace

std::string syntax_error_text(std::string_view toml, Place at, std::string_view description) {
  const std::string_view line = without_space(line_of(toml, at.line));
  if (auto text = twice(toml, at, line, description)) return *text;
  if (auto text = of_another_format(line, description)) return *text;
  if (auto text = missing(line, description)) return *text;
  return without_value(description);
}

}  // namespace carpool::proxy::config
