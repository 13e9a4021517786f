// Timer: one deadline of one owner, cancelled by its destructor. Moving a deadline later and disarming are O(1): the
// heap is updated when the old deadline is due, so re-arming a timer per request is cheap.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "exec/bound.h"

namespace carpool::exec {

class Loop;

class Timer {
 public:
  // `callback` is called on the loop's thread, with the timer disarmed; it may arm it again or destroy it.
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
  Instant deadline_ = kNever;  // set by the owner
  Instant key_ = kNever;       // the heap's key; arm() for this or a later time is O(1) while in the heap
  std::uint32_t place_ = 0;    // 1-based position in the heap; 0: not in it
};

}  // namespace carpool::exec
