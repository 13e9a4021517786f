// TimerHeap: the timers of one loop in a 4-ary heap, keyed by an Instant that is never later than the deadline.
//
// A timer knows its position, so removal needs no search; a timer whose deadline moved later (or was disarmed) keeps
// its position until the old key is due. Not thread-safe: a loop owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "exec/callback_guard.h"
#include "exec/timer.h"

namespace carpool::exec {

class TimerHeap {
 public:
  TimerHeap() = default;
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;
  ~TimerHeap();  // timers that outlive it are disarmed

  void arm(Timer& timer, Instant deadline);
  void remove(Timer& timer);

  // Returns when run_due() has work: never later than the earliest deadline, kNever if there is none.
  Instant next() const { return heap_.empty() ? kNever : heap_.front().key; }
  // Runs due timers, earliest first, and examines at most `limit`: next() is in the past if some are left. A callback
  // may arm, disarm or destroy any timer; none runs twice in one call, however early its new deadline.
  void run_due(Instant now, std::size_t limit, CallbackGuard& guard) LOOP_ONLY;
  // As above without a bound and a guard: throws the first exception after all have run.
  void run_due(Instant now);

  std::size_t size() const { return heap_.size(); }  // includes disarmed timers that are still in the heap

 private:
  struct Node {
    Instant key;
    Timer* timer;
  };
  static constexpr std::size_t kArity = 4;

  void place(std::size_t at, Node node);
  void move_key(Timer& timer, Instant key);
  void sift_up(std::size_t at, Node node);
  void sift_down(std::size_t at, Node node);

  std::vector<Node> heap_;
  Instant running_ = Instant::min();  // keys set inside run_due() are later than this
};

}  // namespace carpool::exec
