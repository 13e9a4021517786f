#include "proxy/http/retry_after.h"

#include <algorithm>
#include <charconv>

#include "proxy/http/http_date.h"

namespace carpool::proxy::http {

namespace {
constexpr std::size_t kLongest = 64;          // of a value: the longest date has 33 characters
constexpr std::int64_t kMax = 2'147'483'648;  // larger numbers mean this one (RFC 9111 §1.2.2)
}  // namespace

std::optional<Duration> retry_after(const Fields& fields, std::chrono::sys_seconds wall) {
  const std::string_view value = fields.get("retry-after");
  if (value.empty() || value.size() > kLongest) return std::nullopt;
  std::int64_t left = 0;
  if (value.find_first_not_of("0123456789") == std::string_view::npos) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), left);
    if (error != std::errc()) left = kMax;  // more digits than the type holds
  } else {
    const auto until = parse_date(value);
    if (!until) return std::nullopt;
    left = (*until - parse_date(fields.get("date")).value_or(wall)).count();
  }
  if (left <= 0) return std::nullopt;
  return std::chrono::seconds(std::min(left, kMax));
}

}  // namespace carpool::proxy::http
