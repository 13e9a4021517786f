#include "proxy/config/syntax_error.h"

#include <algorithm>
#include <array>
#include <optional>

#include "proxy/config/schema.h"
#include "proxy/config/syntax_hint.h"
#include "proxy/config/text.h"
#include "proxy/config/written_key.h"

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

// Returns true if the line sets the key `name`, or one below it.
bool sets(std::string_view line, std::string_view name) {
  line = without_space(line);
  const WrittenKey key = written_key(line);
  if (!key.name.starts_with(name) || (key.name.size() != name.size() && key.name[name.size()] != '.')) return false;
  return without_space(line.substr(key.size)).starts_with('=');
}

std::string name_in_header(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of("[ "), line.size()));
  return written_key(line).name;
}

// Calls `visit` for each line above the line `below`, without the space around it.
template <class Visit>
void each_line_above(std::string_view toml, unsigned below, Visit&& visit) {
  for (unsigned number = 1; number < below; ++number) {
    visit(number, without_space(toml.substr(0, toml.find('\n'))));
    toml.remove_prefix(std::min(toml.find('\n'), toml.size() - 1) + 1);
  }
}

std::string in_line(unsigned number) {
  return number == 0 ? std::string() : " (line " + std::to_string(number) + ')';
}

// Returns " (line 3)": the line above that begins the table, or else the first that defines a part of it; empty if none
// does.
std::string table_above(std::string_view toml, unsigned below, std::string_view name) {
  unsigned whole = 0, part = 0;
  each_line_above(toml, below, [&](unsigned number, std::string_view line) {
    const bool header = line.starts_with('[');
    if (header && name_in_header(line) == name) whole = number;
    if (part == 0 && sets(header ? name_in_header(line) + '=' : std::string(line), name)) part = number;
  });
  return in_line(whole != 0 ? whole : part);
}

// The same for the last line of the same table that sets the key.
std::string key_above(std::string_view toml, unsigned below, std::string_view name) {
  unsigned found = 0;
  each_line_above(toml, below, [&](unsigned number, std::string_view line) {
    if (line.starts_with('[')) found = 0;
    if (sets(line, name)) found = number;
  });
  return in_line(found);
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

// Returns the position in the line of a column, which counts characters of UTF-8 from 1.
std::size_t position_of(std::string_view line, unsigned column) {
  std::size_t at = 0;
  for (unsigned passed = 1; at < line.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(line[at]) & 0xC0U) != 0x80U;
    if (begins && passed++ == column) break;
  }
  return at;
}

// Returns the position of the value of a key that ends at `end`; npos if no `=` follows.
std::size_t value_behind(std::string_view line, std::size_t end) {
  const std::size_t equals = line.find_first_not_of(kSpace, end);
  if (equals == std::string_view::npos || line[equals] != '=') return std::string_view::npos;
  return line.find_first_not_of(kSpace, equals + 1);
}

// Returns the key of an inline table whose value begins at `value`.
WrittenKey key_in_table(std::string_view line, std::size_t value) {
  for (std::size_t at = line.find_first_of("{,"); at < value; at = line.find_first_of("{,", at + 1)) {
    const std::size_t begin = std::min(line.find_first_not_of(kSpace, at + 1), line.size());
    WrittenKey key = written_key(line.substr(begin));
    if (key.size != 0 && value_behind(line, begin + key.size) == value) return key;
  }
  return {};
}

// Returns the text of an error about a key that is set twice. The parser has stopped at the second value, or at the
// part of a dotted key that has a value. In an inline table, the first one is on the same line.
std::string key_twice(std::string_view toml, Place at, std::string_view description) {
  const std::string_view line = line_of(toml, at.line);
  const std::size_t stop = position_of(line, at.column);
  const std::size_t begin = std::min(line.find_first_not_of(kSpace), line.size());
  const bool dotted = description.ends_with("as dotted key-value pair");
  WrittenKey key = written_key(line.substr(begin), stop - begin);
  const bool inside = dotted ? begin + key.size <= stop : value_behind(line, begin + key.size) != stop;
  if (inside) key = dotted ? written_key(line.substr(stop), 0) : key_in_table(line, stop);
  return named(key.name) + " is set already" + (inside ? "" : key_above(toml, at.line, key.name)) +
         ", expected each key once";
}

// Returns the text of an error about a key or a table that is defined twice.
std::optional<std::string> twice(std::string_view toml, Place at, std::string_view line, std::string_view description) {
  const std::size_t found = description.find("cannot redefine existing ");
  if (found == std::string_view::npos) return std::nullopt;
  if (!has(description.substr(0, found), "table header")) return key_twice(toml, at, description);
  const std::string name = name_in_header(line);
  const std::string above = table_above(toml, at.line, name);
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
  const auto& [key, size] = written_key(line);
  const std::string_view behind = without_space(line.substr(size));
  if (!key.empty() && behind == ":") {
    return named(key) + " is followed by `:`, expected a table [" + (known(key) ? key : "table") + ']';
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
  const std::string key = written_key(line).name;
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
