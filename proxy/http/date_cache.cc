#include "proxy/http/date_cache.h"

namespace carpool::proxy::http {

void DateCache::format(Instant now) {
  const auto wall = wall_();
  const auto second = std::chrono::floor<std::chrono::seconds>(wall);
  next_second_ = now + (std::chrono::seconds(1) - (wall - second));
  write_date(text_, second);
}

}  // namespace carpool::proxy::http
