// Eviction: paces the exit of idle threads. At most `count` leave per idle timeout, none before it was idle for one
// timeout, and none within one timeout of the pool's last growth, so that the pool does not shrink and grow at once.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace carpool::exec {

class Eviction {
 public:
  Eviction(Duration idle_timeout, unsigned count)
      : idle_timeout_(idle_timeout), period_(idle_timeout / std::max(1U, count)) {}

  void grew(Instant now) { next_ = std::max(next_, now + idle_timeout_); }
  // Returns the earliest time at which a thread idle since `idle_since` may leave; kNever if the idle timeout is zero.
  Instant earliest(Instant idle_since) const {
    return idle_timeout_ <= Duration::zero() ? kNever : std::max(idle_since + idle_timeout_, next_);
  }
  // Returns true if the thread leaves; the next may leave one period later. Unused periods do not accumulate.
  bool leave(Instant now, Instant idle_since) {
    if (now < earliest(idle_since)) return false;
    next_ = std::max(next_ + period_, now + 2 * period_ - idle_timeout_);
    return true;
  }

 private:
  Duration idle_timeout_, period_;
  Instant next_{};
};

}  // namespace carpool::exec
