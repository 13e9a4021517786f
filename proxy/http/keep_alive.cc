#include "proxy/http/keep_alive.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "proxy/http/field_name.h"

namespace carpool::proxy::http {

namespace {
constexpr std::string_view kSpace = " \t";
constexpr std::uint32_t kDay = 24 * 60 * 60;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}
}  // namespace

std::optional<Duration> keep_alive_timeout(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view part = trimmed(value.substr(0, comma));
    value = comma == std::string_view::npos ? std::string_view() : value.substr(comma + 1);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || !iequals(trimmed(part.substr(0, equals)), "timeout")) continue;
    const std::string_view number = trimmed(part.substr(equals + 1));
    std::uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
    if (error == std::errc::result_out_of_range) seconds = kDay;
    if (error == std::errc::invalid_argument || end != number.data() + number.size()) return std::nullopt;
    return std::chrono::seconds(std::min(seconds, kDay));
  }
  return std::nullopt;
}

}  // namespace carpool::proxy::http
