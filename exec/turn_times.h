// TurnTimes: how long the turns of a loop take, and how late its due timers run. The loop writes, any thread reads.
//
// A turn is the time between two waits for events: everything that becomes ready meanwhile waits for its end. A timer
// runs late by a long turn, by a processor that is busy elsewhere, and by the wait's resolution of a millisecond.
#pragma once

#include "base/clock.h"
#include "metrics/histogram.h"

namespace carpool::exec {

class TurnTimes {
 public:
  // Called when the wait has ended; `due` is the deadline of the next timer, kNever without one.
  void begin(Instant now, Instant due) {
    began_ = now;
    if (due <= now) delays_.observe(now - due);
  }
  // Called when the loop is about to wait; before the first turn this counts nothing.
  void end(Instant now) {
    if (began_ == kNever) return;
    turns_.observe(now - began_);
    began_ = kNever;
  }

  metrics::HistogramTotals turns() const { return turns_.read(); }
  metrics::HistogramTotals delays() const { return delays_.read(); }

 private:
  Instant began_ = kNever;
  metrics::Histogram turns_, delays_;
};

}  // namespace carpool::exec
