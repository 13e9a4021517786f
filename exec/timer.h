// Timer: one deadline of one owner, cancelled by its destructor. Moving a deadline later and disarming are O(1): the
// heap learns of it when the old deadline comes up, so a timer that is re-armed per request costs nothing.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "exec/bound.h"

namespace carpool::exec {

class Loop;

class Timer {
 public:
  // `callback` is called on the loop's thread; the timer is disarmed by then, and may be armed again or destroyed from
  // inside.
  Timer(Loop& loop, Bound callback) : loop_(loop), callback_(callback) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  // Timer::bind<&Client::on_idle>(loop, *this)
  template <auto Method, class Owner>
  static Timer bind(Loop& loop, Owner& owner) {
    return Timer(loop, Bound::to<Method>(owner));
  }

  void arm(Instant deadline);  // kNever disarms
  void disarm();
  bool armed() const { return deadline_ != kNever; }
  Instant deadline() const { return deadline_; }

 private:
  friend class TimerHeap;
  Loop& loop_;
  const Bound callback_;
  Instant deadline_ = kNever;  // what the owner wants
  Instant key_ = kNever;       // where the heap has it; while it is in the heap an arm() for this or later is O(1)
  std::uint32_t place_ = 0;    // 1-based place in the heap; 0: not in it
};

}  // namespace carpool::exec
