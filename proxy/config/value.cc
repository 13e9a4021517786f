#include "proxy/config/value.h"

#include <algorithm>
#include <optional>

#include "base/ascii.h"
#include "base/utf8.h"
#include "proxy/config/cores.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kDurationShape = R"(a duration such as "250ms", "30s", "10m" or "1h")";
constexpr std::string_view kSizeShape = R"(a size such as "0", "512B", "16KiB" or "1MiB")";

constexpr std::string_view kNotUtf8 = "contains a byte that is not UTF-8, expected a text in UTF-8";

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  return in_quotes(clipped(text, kShown)).append(text.size() > kShown ? "…" : "");
}

std::string but_expected(const Raw& raw, std::string_view expected) {
  return "is " + raw_text(raw) + ", expected " + std::string(expected);
}

std::string out_of_bounds(const Setting& setting, const Value& value) {
  return "is " + toml(value) + ", expected " + bounds_text(setting, value);
}

bool within(const Setting& setting, std::int64_t number) {
  return number >= setting.least && number <= setting.most;
}

std::string to_flag(const Raw& raw, Value& value) {
  const auto* flag = std::get_if<bool>(&raw);
  if (flag == nullptr) return but_expected(raw, "true or false");
  value = *flag;
  return {};
}

std::string to_number(const Setting& setting, const Raw& raw, Value& value) {
  const auto* text = std::get_if<std::string>(&raw);
  if (setting.or_auto && text != nullptr && *text == "auto") {
    value = setting.auto_stays ? std::int64_t{kAutomatic} : static_cast<std::int64_t>(granted_cores());
    return {};
  }
  const auto* number = std::get_if<std::int64_t>(&raw);
  const std::string range = bounds_text(setting, value);
  const std::string expected = "an integer" + (range.empty() ? "" : " from " + range);
  if (number != nullptr && within(setting, *number)) {
    value = *number;
    return {};
  }
  std::string error = but_expected(raw, expected + (setting.or_auto ? R"(, or "auto")" : ""));
  const auto quoted = text == nullptr ? std::nullopt : number_in<std::int64_t>(*text);
  if (quoted && within(setting, *quoted)) error += ": write " + *text + " without quotes";
  return error;
}

// The advice for a number without a unit.
std::string with_units(std::string_view number) {
  return std::string(": write \"").append(number).append("s\" or \"").append(number).append("ms\"");
}

// The advice for a size with a decimal unit, such as "10MB" or "64k"; empty for any other text.
std::string with_binary_unit(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  const bool decimal = unit.size() == 1 || (unit.size() == 2 && ascii_lower(unit[1]) == 'b');
  const std::size_t known = decimal ? std::string_view("kmg").find(ascii_lower(unit[0])) : std::string_view::npos;
  if (digits == 0 || known == std::string_view::npos) return {};
  return std::string(": write \"").append(text, 0, digits).append(1, "KMG"[known]).append("iB\"");
}

std::string to_duration(const Setting& setting, const Raw& raw, Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&raw)) {
    return but_expected(raw, kDurationShape) + with_units(std::to_string(*number));
  }
  const auto* text = std::get_if<std::string>(&raw);
  if (setting.or_unlimited && text != nullptr && *text == "unlimited") {
    value = kUnlimited;
    return {};
  }
  const auto duration = text == nullptr ? std::nullopt : parse_duration(*text);
  if (!duration) {
    const bool bare = text != nullptr && number_in<std::uint64_t>(*text);
    return but_expected(raw, std::string(kDurationShape) + (setting.or_unlimited ? R"(, or "unlimited")" : "")) +
           (bare ? with_units(*text) : "");
  }
  value = *duration;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count();
  return within(setting, ms) ? std::string() : out_of_bounds(setting, value);
}

std::string to_size(const Setting& setting, const Raw& raw, Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&raw)) {
    const std::string bytes = *number < 0 ? "0" : size_text(static_cast<Size>(*number));
    return but_expected(raw, kSizeShape) + ": write \"" + bytes + '"';
  }
  const auto* text = std::get_if<std::string>(&raw);
  const auto bytes = text == nullptr ? std::nullopt : parse_size(*text);
  if (!bytes) return but_expected(raw, kSizeShape) + (text == nullptr ? "" : with_binary_unit(*text));
  value = *bytes;
  return within(setting, static_cast<std::int64_t>(*bytes)) ? std::string() : out_of_bounds(setting, value);
}

std::string one_of(const Setting& setting) {
  std::string all;
  for (const auto word : setting.words) all.append(all.empty() ? "" : ", ").append(in_quotes(word));
  return "one of " + all;
}

std::string check_word(const Setting& setting, const std::string& text) {
  if (std::find(setting.words.begin(), setting.words.end(), text) != setting.words.end()) return {};
  std::string error = "is " + shown(text) + ", expected " + one_of(setting);
  if (const auto meant = nearest(text, setting.words); !meant.empty())
    error += "; did you mean " + in_quotes(meant) + '?';
  return error;
}

// A variable may hold any bytes, but a printed configuration is UTF-8.
bool is_utf8(std::string_view text) {
  for (std::size_t size = 0; !text.empty(); text.remove_prefix(size)) {
    size = first_character(text);
    if (size == 0) return false;
  }
  return true;
}

std::string check_text(const Setting& setting, std::string& text) {
  if (text.find('\0') != std::string::npos) return "contains a NUL byte, expected a text without one";
  if (!is_utf8(text)) return std::string(kNotUtf8);
  if (!setting.words.empty()) return check_word(setting, text);
  if (setting.form == nullptr) return {};
  const std::string error = setting.form->accept(text);
  return error.empty() ? error : error + ", expected " + std::string(setting.form->expected);
}

std::string text_shape(const Setting& setting) {
  if (!setting.words.empty()) return one_of(setting);
  const std::string quotes = "a text in quotes";
  return setting.form == nullptr ? quotes : quotes + ": " + std::string(setting.form->expected);
}

std::string to_text(const Setting& setting, Raw raw, Value& value) {
  auto* text = std::get_if<std::string>(&raw);
  if (text == nullptr) return but_expected(raw, text_shape(setting));
  // If the default is "none", an empty text is its notation and needs no check.
  if (!(text->empty() && !setting.example.empty())) {
    if (std::string error = check_text(setting, *text); !error.empty()) return error;
  }
  value = std::move(*text);
  return {};
}

std::string add_text(const Setting& setting, Raw item, std::vector<std::string>& list) {
  auto* text = std::get_if<std::string>(&item);
  if (text == nullptr) {
    std::string error = but_expected(item, "a text in quotes");
    const auto* number = std::get_if<std::int64_t>(&item);
    std::string quoted = number == nullptr ? std::string() : std::to_string(*number);
    if (number != nullptr && check_text(setting, quoted).empty()) error += ": write " + in_quotes(quoted);
    return error;
  }
  std::string error = check_text(setting, *text);
  if (error.empty()) list.push_back(std::move(*text));
  return error;
}

std::string add_port(const Setting& setting, const Raw& item, Ports& list) {
  const auto* port = std::get_if<std::int64_t>(&item);
  if (port == nullptr || !within(setting, *port)) return but_expected(item, "a port from 1 to 65535");
  list->push_back(static_cast<std::uint16_t>(*port));
  return {};
}

}  // namespace

std::string raw_text(const Raw& raw) {
  if (const auto* flag = std::get_if<bool>(&raw)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&raw)) return "the integer " + std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&raw)) return shown(*text);
  if (const auto* other = std::get_if<Other>(&raw)) return std::string(other->what);
  if (std::holds_alternative<RawTable>(raw)) return "a table";
  return "a list";
}

bool has_variable(std::string_view text) {
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) {
    if (at == 0 || text[at - 1] != '$') return true;
  }
  return false;
}

void read_expanded(const Value& value, Raw& raw) {
  const auto* text = std::get_if<std::string>(&raw);
  if (text == nullptr) return;
  if (std::holds_alternative<bool>(value) && (*text == "true" || *text == "false")) {
    raw = *text == "true";
  } else if (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<Ports>(value)) {
    if (const auto number = number_in<std::int64_t>(*text)) raw = *number;
  }
}

std::string expand_all(Raw& raw, const Env& env, bool& too_long) {
  if (auto* text = std::get_if<std::string>(&raw)) return expand(*text, env, too_long);
  if (auto* table = std::get_if<RawTable>(&raw)) {
    for (auto& [key, text] : table->texts) {
      if (std::string error = expand(text, env, too_long); !error.empty()) return error;
    }
  }
  return {};
}

std::string to_secret(Raw raw, Secret& secret) {
  constexpr std::string_view kExpected = R"(expected a text, or { file = "/path" } with an optional prefix)";
  const auto unexpected = [&](std::string_view what) { return std::string(what).append(", ").append(kExpected); };
  if (auto* text = std::get_if<std::string>(&raw)) {
    if (text->empty()) return unexpected("is empty");
    secret.text = std::move(*text);
    return {};
  }
  auto* table = std::get_if<RawTable>(&raw);
  if (table == nullptr) return unexpected("is not text");
  for (auto& [key, text] : table->texts) {
    if (key != "file" && key != "prefix") return unexpected("has the key " + in_quotes(key));
    (key == "file" ? secret.file : secret.prefix) = std::move(text);
  }
  if (!table->only_texts)
    return unexpected("is hidden, as in a printed configuration, or has a value that is not text");
  if (secret.file.empty()) return unexpected("names no file");
  if (!is_utf8(secret.file) || !is_utf8(secret.prefix)) return std::string(kNotUtf8);
  return {};
}

std::string convert(const Setting& setting, Raw raw, Value& value) {
  if (std::holds_alternative<bool>(value)) return to_flag(raw, value);
  if (std::holds_alternative<std::int64_t>(value)) return to_number(setting, raw, value);
  if (std::holds_alternative<Duration>(value)) return to_duration(setting, raw, value);
  if (std::holds_alternative<Size>(value)) return to_size(setting, raw, value);
  if (std::holds_alternative<std::string>(value)) return to_text(setting, std::move(raw), value);
  if (std::holds_alternative<Secret>(value)) {
    value = Secret{};
    return to_secret(std::move(raw), std::get<Secret>(value));
  }
  return but_expected(raw, std::holds_alternative<Ports>(value) ? "a list of ports, as in [443]"
                                                                : "a list of texts, as in [\"a\", \"b\"]");
}

bool is_list(const Value& value) {
  return std::holds_alternative<std::vector<std::string>>(value) || std::holds_alternative<Ports>(value);
}

std::string convert_item(const Setting& setting, Raw item, Value& list) {
  if (auto* texts = std::get_if<std::vector<std::string>>(&list)) return add_text(setting, std::move(item), *texts);
  return add_port(setting, item, std::get<Ports>(list));
}

}  // namespace carpool::proxy::config
