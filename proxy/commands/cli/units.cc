#include "proxy/commands/cli/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace carpool::proxy::cli {
namespace {

struct Step {
  double factor;  // factor of the base unit
  std::string_view name;
};
constexpr std::array<Step, 6> kSeconds{{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
constexpr std::array<Step, 4> kBytes{{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}};

std::string three_digits(double value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), std::abs(value) < 999.5 ? "%.3g" : "%.0f", value);
  return text.data();
}

template <std::size_t N>
std::string scaled(double value, const std::array<Step, N>& steps, std::string_view base) {
  if (value == 0) return "0 " + std::string(base);
  const auto* step =
      std::find_if(steps.begin(), steps.end(), [&](const Step& one) { return std::abs(value) >= one.factor; });
  if (step == steps.end()) --step;
  return three_digits(value / step->factor).append(1, ' ').append(step->name);
}

bool a_unit(std::string_view text) {
  const auto is = [&](const Step& one) { return one.name == text; };
  return text.empty() || text == "/s" || std::any_of(kSeconds.begin(), kSeconds.end(), is) ||
         std::any_of(kBytes.begin(), kBytes.end(), is);
}

}  // namespace

std::string with_unit(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return scaled(value, kSeconds, "s");
    case Unit::bytes:
      return scaled(value, kBytes, "B");
    case Unit::per_second:
      return three_digits(value) + "/s";
    case Unit::none:
      break;
  }
  return three_digits(value);
}

Titled titled(std::string_view name) {
  constexpr std::string_view kInSeconds = "_seconds", kInBytes = "_bytes";
  if (name == "seconds") return {"for", Unit::seconds};
  if (name == "found_seconds_ago") return {"found_ago", Unit::seconds};
  if (name.ends_with(kInSeconds)) return {name.substr(0, name.size() - kInSeconds.size()), Unit::seconds};
  if (name.ends_with(kInBytes)) return {name.substr(0, name.size() - kInBytes.size()), Unit::bytes};
  return {name, Unit::none};
}

bool numeric(std::string_view text) {
  if (text == "-") return true;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.e+-"), text.size());
  if (digits == 0) return false;
  text.remove_prefix(digits);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return a_unit(text);
}

}  // namespace carpool::proxy::cli
