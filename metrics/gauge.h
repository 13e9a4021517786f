// Gauge: a number that rises and falls, with one share per loop. One loop may subtract what another added: a share may
// be negative; only the sum is meaningful.
#pragma once

#include "metrics/counter.h"

namespace carpool::metrics {

class Gauge {
 public:
  explicit Gauge(unsigned loops) : up_(loops), down_(loops) {}

  void add(LoopId loop, std::uint64_t n = 1) { up_.add(loop, n); }
  void sub(LoopId loop, std::uint64_t n = 1) { down_.add(loop, n); }
  // A reader between another loop's `add` and this one's `sub` may see an older value: never below zero.
  std::uint64_t total() const {
    const std::uint64_t subtracted = down_.total();
    const std::uint64_t added = up_.total();
    return added > subtracted ? added - subtracted : 0;
  }

 private:
  Counter up_, down_;
};

}  // namespace carpool::metrics
