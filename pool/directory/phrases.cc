#include "pool/directory/phrases.h"

#include <cstdio>

namespace carpool::pool::phrases {

std::string number(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count).append(" ").append(count == 1 ? one : many);
}

std::string time(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.0f ms" : "%.1f s", seconds < 1 ? seconds * 1000 : seconds);
  return text;
}

std::string age(Duration duration) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const double seconds = std::chrono::duration<double>(duration).count();
  if (seconds < 2 * kMinute) return time(duration);
  char text[32];
  if (seconds < 2 * kHour) {
    std::snprintf(text, sizeof text, "%.0f min", seconds / kMinute);
  } else {
    std::snprintf(text, sizeof text, seconds < 2 * kDay ? "%.1f h" : "%.1f days",
                  seconds / (seconds < 2 * kDay ? kHour : kDay));
  }
  return text;
}

}  // namespace carpool::pool::phrases
