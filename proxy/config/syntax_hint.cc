#include "proxy/config/syntax_hint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::array<std::string_view, 6> kTrue{"True", "TRUE", "yes", "Yes", "on", "On"};
constexpr std::array<std::string_view, 6> kFalse{"False", "FALSE", "no", "No", "off", "Off"};

bool contains(const std::array<std::string_view, 6>& words, std::string_view value) {
  return std::find(words.begin(), words.end(), value) != words.end();
}

constexpr std::string_view kText = "is a text without quotes";

struct Advice {
  std::string_view what;  // empty: the value is not one that lacks quotes alone
  std::string instead;
};

Advice advice(std::string_view value) {
  if (contains(kTrue, value)) return {"is not a TOML value", "true"};
  if (contains(kFalse, value)) return {"is not a TOML value", "false"};
  const bool number = value.front() >= '0' && value.front() <= '9';
  if (number && parse_duration(value)) return {"is a duration without quotes", in_quotes(value)};
  if (number && parse_size(value) && value.back() == 'B') return {"is a size without quotes", in_quotes(value)};
  const std::string_view base = value.substr(0, 2);
  if (base == "0x" || base == "0o" || base == "0b") return {};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool text = std::any_of(value.begin(), value.end(), letter) ||
                    std::count(value.begin(), value.end(), '.') > 1 || value.find("::") != std::string_view::npos;
  return text ? Advice{kText, in_quotes(value)} : Advice{};
}

}  // namespace

std::string_view line_of(std::string_view toml, unsigned number) {
  for (unsigned line = 1; line < number; ++line) {
    const std::size_t end = toml.find('\n');
    if (end == std::string_view::npos) return {};
    toml.remove_prefix(end + 1);
  }
  return toml.substr(0, toml.find('\n'));
}

std::optional<SyntaxHint> value_without_quotes(std::string_view toml, Place at) {
  constexpr std::size_t kMaxValue = 100;
  const std::string_view line = line_of(toml, at.line);
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::size_t start = line.find_first_not_of(kBlanks, equals + 1);
  // The parser stops inside the value or right after it.
  if (start == std::string_view::npos || at.column <= start) return std::nullopt;
  std::string_view value = line.substr(start, line.find('#', start) - start);
  value = value.substr(0, value.find_last_not_of(kBlanks) + 1);
  const auto plain = [](char c) { return c > ' ' && c < 0x7F && c != '"' && c != '\'' && c != '`'; };
  const bool one_word = !value.empty() && std::all_of(value.begin(), value.end(), plain);
  if (!one_word || value.size() > kMaxValue || value.find_first_of("[]{},") != std::string_view::npos) {
    return std::nullopt;
  }
  const Advice found = advice(value);
  if (found.what.empty()) return std::nullopt;
  Place place = at;
  place.column = static_cast<unsigned>(start + 1);
  std::string corrected(toml);
  corrected.replace(static_cast<std::size_t>(value.data() - toml.data()), value.size(), found.instead);
  // A text may be a secret, and the error reaches the log; a duration, a size or a flag is none.
  std::string text(kText);
  text += R"(: write "…")";
  if (found.what != kText) {
    text = '`' + std::string(value) + "` ";
    text.append(found.what).append(": write ").append(found.instead);
  }
  return SyntaxHint{place, std::move(text), std::move(corrected)};
}

std::string without_value(std::string_view description) {
  const std::size_t last = description.rfind('\'');
  const bool value = last != std::string_view::npos && (description.substr(last).starts_with("' is not rep") ||
                                                        description.substr(last).starts_with("' could not") ||
                                                        description.substr(last).starts_with("' as a value"));
  if (!value) return std::string(description);
  std::string text(description.substr(0, description.find('\'')));
  return text.append("the value").append(description.substr(last + 1));
}

}  // namespace carpool::proxy::config
