// Parsing and printing use the same tables of units.
#include "proxy/config/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace carpool::proxy::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 4> kDurations{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};  // in ms
constexpr std::array<Unit, 5> kSizes{
    {{"", 1}, {"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}}};

template <std::size_t N>
std::optional<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& known : units) {
    if (unit != known.name) continue;
    if (number > most / known.factor) return std::nullopt;
    return number * known.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  using std::chrono::milliseconds;
  const auto most = std::chrono::duration_cast<milliseconds>(kLongest).count();
  const auto ms = parse(text, kDurations, static_cast<std::uint64_t>(most));
  if (!ms) return std::nullopt;
  return milliseconds(static_cast<milliseconds::rep>(*ms));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, kSizes, 1ULL << 62);
}

std::string duration_text(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms % 1000 != 0) return std::to_string(ms) + "ms";
  if (ms != 0 && ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms > 60'000 && ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";  // one minute is printed as 60s
  return std::to_string(ms / 1000) + "s";
}

std::string size_text(std::uint64_t bytes) {
  for (std::size_t i = kSizes.size() - 1; i > 1; --i) {
    const Unit& unit = kSizes[i];
    if (bytes != 0 && bytes % unit.factor == 0) return std::to_string(bytes / unit.factor).append(unit.name);
  }
  return std::to_string(bytes);
}

namespace {
bool control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

void append_escaped(std::string& out, char c) {
  append_hex(out.append("\\u00"), c, kUpperHex);
}
}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (control(c)) {
      append_escaped(out, c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      out.append(1, '\\').append(1, text[i]);
    } else if (c == '$' && text.substr(i + 1, 1) == "{") {
      out += "$$";
    } else if (control(c)) {
      append_escaped(out, c);
    } else {
      out += text[i];
    }
  }
  return out += '"';
}

unsigned edit_distance(std::string_view a, std::string_view b) {
  std::vector<unsigned> row(b.size() + 1);
  for (unsigned j = 0; j <= b.size(); ++j) row[j] = j;
  for (unsigned i = 0; i < a.size(); ++i) {
    unsigned diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const unsigned replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

}  // namespace carpool::proxy::config
