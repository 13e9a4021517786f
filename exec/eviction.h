// Eviction: when an idle thread may leave. At most `count` leave per idle timeout, none before it was idle for one, and
// none within one of the pool's last growth: a pool that just grew does not shrink and grow again.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace carpool::exec {

class Eviction {
 public:
  Eviction(Duration idle_timeout, unsigned count)
      : idle_timeout_(idle_timeout), period_(idle_timeout / std::max(1U, count)) {}

  void grew(Instant now) { next_ = std::max(next_, now + idle_timeout_); }
  // When a thread that is idle since then may ask. An idle timeout of zero: never.
  Instant earliest(Instant idle_since) const {
    return idle_timeout_ <= Duration::zero() ? kNever : std::max(idle_since + idle_timeout_, next_);
  }
  // True: it leaves, and the next one may a period later. What was not used in quiet times is not saved up.
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
