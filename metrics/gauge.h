// Gauge: a number that goes up and down, in one share per loop. What one loop added another may take away: a share may
// be negative, the sum is what counts.
#pragma once

#include "metrics/counter.h"

namespace carpool::metrics {

class Gauge {
 public:
  explicit Gauge(unsigned loops) : up_(loops), down_(loops) {}

  void add(LoopId loop, std::uint64_t n = 1) { up_.add(loop, n); }
  void sub(LoopId loop, std::uint64_t n = 1) { down_.add(loop, n); }
  // A reader between another loop's `add` and this one's `sub` may be a moment behind: never below zero.
  std::uint64_t total() const {
    const std::uint64_t gone = down_.total();
    const std::uint64_t came = up_.total();
    return came > gone ? came - gone : 0;
  }

 private:
  Counter up_, down_;
};

}  // namespace carpool::metrics
