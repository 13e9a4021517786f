// BodyRate: the minimum average rate at which a client sends the body of a request, or accepts that of a response,
// after a grace period. Only time in which carpool awaits the client counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

class BodyRate {
 public:
  // Starts at `now`. A rate of zero has no deadline.
  void begin(Instant now, const config::Listen& listen) {
    rate_ = listen.body_min_rate;
    grace_ = listen.body_grace;
    renew(now, 0);
  }
  // Must be called when carpool has not awaited the client until now: starts a new grace period, with `moved` bytes so
  // far.
  void renew(Instant now, std::uint64_t moved) {
    from_ = now;
    counted_ = moved;
  }
  bool counts() const { return rate_ != 0; }
  // Returns when a body of which `moved` bytes were transferred until `now` falls below the rate; `moved` never falls.
  // Bytes ahead of the rate count for at most `credit`, or for the grace period if that is longer; otherwise a fast
  // beginning would permit hours of silence.
  Instant deadline(Instant now, std::uint64_t moved, Duration credit) {
    if (!counts()) return kNever;
    const Instant end = from_ + grace_ + time_of(moved - counted_);
    const Instant latest = now + std::max(credit, grace_);
    if (end <= latest) return end;
    from_ = latest - grace_;
    counted_ = moved;  // time_of() ends at some size, from which on further bytes would extend nothing
    return latest;
  }
  // Returns true if `received` bytes in the time `since` the head satisfy the rate.
  static bool is_met(std::uint64_t rate, std::uint64_t received, Duration since) {
    using std::chrono::milliseconds;
    const auto ms = static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(since).count());
    return received * 1000 >= rate * ms;
  }

 private:
  Duration time_of(std::uint64_t bytes) const {
    constexpr std::uint64_t kMax = std::uint64_t{1} << 40;  // 35 years in milliseconds: no sum overflows
    const std::uint64_t ms = bytes > UINT64_MAX / 1000 ? kMax : std::min(bytes * 1000 / rate_, kMax);
    return std::chrono::milliseconds(ms);
  }
  config::Size rate_ = 0;  // bytes per second
  Duration grace_{};
  Instant from_{};
  std::uint64_t counted_ = 0;
};

}  // namespace carpool::proxy
