// DialBackoff: the delay before the next dial after a failed one, doubling up to kLongest, while other connections of
// the destination serve.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace carpool::pool {

class DialBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(1);

  bool blocks(Instant now) const { return now < until_; }
  Instant until() const { return until_; }
  void failed(Instant now) {
    if (blocks(now)) return;  // concurrent dials that fail together count as one step
    step_ = step_ == Duration::zero() ? kFirst : std::min(step_ * 2, kLongest);
    until_ = now + step_;
    wake_requested_ = false;
  }
  void succeeded() {
    step_ = Duration::zero();
    until_ = Instant::min();
  }
  // Returns true once per delay: the caller requests a wake-up.
  bool request_wake_once() { return !std::exchange(wake_requested_, true); }
  void woken() { wake_requested_ = false; }

 private:
  Duration step_{};
  Instant until_ = Instant::min();
  bool wake_requested_ = false;
};

}  // namespace carpool::pool
