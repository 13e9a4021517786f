// DateCache: the value of Date (RFC 9110 §6.6.1) for the responses of one loop. It is formatted once a second.
#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "base/clock.h"
#include "proxy/http/http_date.h"

namespace carpool::proxy::http {

class DateCache {
 public:
  using WallClock = std::chrono::system_clock::time_point (*)() noexcept;
  explicit DateCache(WallClock wall = std::chrono::system_clock::now) : wall_(wall) {}

  // Returns the date at `now`, valid until the next call. A wall clock that is set is followed within a second.
  std::string_view at(Instant now) {
    if (now >= next_second_) format(now);
    return {text_.data(), text_.size()};
  }

 private:
  void format(Instant now);

  const WallClock wall_;
  Instant next_second_ = Instant::min();
  std::array<char, kDateSize> text_{};
};

}  // namespace carpool::proxy::http
