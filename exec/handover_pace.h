// HandoverPace: decides whether handing over the producer role pays. On a machine without a free core the woken thread
// may not run before the caller's task is done; meanwhile the loop does not run.
//
// A hand-over that left the role unheld for kLate is late: hand-overs pause, and tasks are queued instead. The pause
// doubles with each late hand-over, up to kLongest, and halves with each kInTime consecutive ones in time. Plain data:
// all calls come from the holder of the role, so the role's word orders them.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace carpool::exec {

class HandoverPace {
 public:
  static constexpr Duration kLate = std::chrono::microseconds(500);
  static constexpr Duration kShortest = std::chrono::milliseconds(64);
  static constexpr Duration kLongest = std::chrono::seconds(4);
  static constexpr unsigned kInTime = 16;

  // Returns false in normal operation: the next hand-over may be tried without reading the clock.
  bool paused() const { return resumes_at_ != Instant{}; }
  // Returns true if the pause is over: the next hand-over is a trial.
  bool resume(Instant now) {
    if (now < resumes_at_) return false;
    resumes_at_ = Instant{};
    return true;
  }

  // Returns true if hand-overs were late recently, so each is timed.
  bool recently_late() const { return pause_ != Duration::zero(); }

  // Notes that the role is released at `now`; kNever: the hand-over is not timed.
  void role_released(Instant now) { released_at_ = now; }
  bool timed() const { return released_at_ != kNever; }
  // Notes that the role has a holder again, the same thread or another.
  void role_taken(Instant now) {
    const bool late = now - released_at_ >= kLate;
    released_at_ = kNever;
    in_time_ = late ? 0 : in_time_ + 1;
    if (late) {
      pause_ = std::clamp(pause_ * 2, kShortest, kLongest);
      resumes_at_ = now + pause_;
    } else if (in_time_ % kInTime == 0) {
      pause_ = pause_ / 2 < kShortest ? Duration::zero() : pause_ / 2;
    }
  }

 private:
  Duration pause_{};  // the last pause; zero: none recently
  Instant resumes_at_{};
  Instant released_at_ = kNever;
  unsigned in_time_ = 0;  // consecutive
};

}  // namespace carpool::exec
