// BodyRate: the slowest that a request's body may come. On average, behind a grace, and only while it is read: time in
// which carpool itself holds the client back does not count.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

class BodyRate {
 public:
  // Counts from `now` on; a rate of zero demands nothing.
  void begin(Instant now, const config::Listen& listen) {
    rate_ = listen.body_min_rate;
    grace_ = listen.body_grace;
    renew(now, 0);
  }
  // The client was held back until now, with so many bytes received: it has its grace again.
  void renew(Instant now, std::uint64_t received) {
    from_ = now;
    counted_ = received;
  }
  bool counts() const { return rate_ != 0; }
  // When a body of which so much was received is too slow.
  Instant deadline(std::uint64_t received) const {
    return counts() ? from_ + grace_ + time_of(received - counted_) : kNever;
  }
  // Has so much come in the time since `began` that it keeps the rate already?
  static bool keeps(std::uint64_t rate, std::uint64_t received, Duration since) {
    using std::chrono::milliseconds;
    const auto ms = static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(since).count());
    return received * 1000 >= rate * ms;
  }

 private:
  Duration time_of(std::uint64_t bytes) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // milliseconds: no sum overflows
    const std::uint64_t ms = bytes > kMost ? kMost : bytes * 1000 / rate_;
    return std::chrono::milliseconds(ms);
  }
  config::Size rate_ = 0;  // bytes a second
  Duration grace_{};
  Instant from_{};
  std::uint64_t counted_ = 0;
};

}  // namespace carpool::proxy
