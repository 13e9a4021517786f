#include "exec/timer.h"

#include "exec/loop.h"

namespace carpool::exec {

Timer::~Timer() {
  if (place_ == 0) return;
  assume_on_loop();
  loop_.disarm(*this);
}

void Timer::arm(Instant deadline) {
  if (deadline == kNever) return disarm();
  if (place_ != 0 && deadline >= key_) {
    deadline_ = deadline;  // the heap reads it when key_ is due
    return;
  }
  assume_on_loop();
  loop_.arm(*this, deadline);
}

void Timer::disarm() {
  deadline_ = kNever;  // its heap position is given up when key_ is due, or reused by the next arm()
}

}  // namespace carpool::exec
