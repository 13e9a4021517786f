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

}  // namespace carpool::pool::phrases
