// HandoverPace: whether a hand-over of the role helps at the moment. On a machine without a free core the thread that
// was called may not run before the task of the thread that called it is done: meanwhile the loop stands still.
//
// A hand-over that left the role alone for kLate is late: hand-overs pause, and tasks are queued instead. The pause
// doubles with each late hand-over that follows it, up to kLongest, and halves with each kInTime in a row that were in
// time. Plain data: the holder of the role calls everything here, so the role's word orders it.
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

  // False in calm times: the next hand-over may be tried, and no clock need be read.
  bool paused() const { return resumes_at_ != Instant{}; }
  // True: the pause is over, and the next hand-over is a trial.
  bool resume(Instant now) {
    if (now < resumes_at_) return false;
    resumes_at_ = Instant{};
    return true;
  }

  // True: hand-overs came late not long ago, so each is timed.
  bool suspicious() const { return pause_ != Duration::zero(); }

  // The role is given away at `now`, or (kNever) without being timed.
  void let_go(Instant now) { alone_since_ = now; }
  bool timed() const { return alone_since_ != kNever; }
  // The role has a holder again, the same thread or another one.
  void taken(Instant now) {
    const bool late = now - alone_since_ >= kLate;
    alone_since_ = kNever;
    in_time_ = late ? 0 : in_time_ + 1;
    if (late) {
      pause_ = std::clamp(pause_ * 2, kShortest, kLongest);
      resumes_at_ = now + pause_;
    } else if (in_time_ % kInTime == 0) {
      pause_ = pause_ / 2 < kShortest ? Duration::zero() : pause_ / 2;
    }
  }

 private:
  Duration pause_{};  // the last one; zero: none of late
  Instant resumes_at_{};
  Instant alone_since_ = kNever;
  unsigned in_time_ = 0;  // in a row
};

}  // namespace carpool::exec
