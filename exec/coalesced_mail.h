// CoalescedMail: notifies a loop that something changed. Calls made while the mail is posted share it.
#pragma once

#include "exec/atomic.h"
#include "exec/bound.h"
#include "exec/loop.h"
#include "exec/mail.h"

namespace carpool::exec {

class CoalescedMail final : private Mail {
 public:
  // `arrived` is called on the loop's thread.
  CoalescedMail(Loop& loop, Bound arrived) : loop_(loop), arrived_(arrived) {}

  // May be called on any thread. `arrived` is then called and reads everything that was written before this call.
  void post() {
    // acq_rel pairs with the exchange in arrive(): either it has already taken the mail, and this call posts a new one,
    // or it is still to come and acquires what was written before this call.
    if (!posted_.exchange(true, std::memory_order_acq_rel)) loop_.post(*this);
  }
  // Returns true while the mail is in flight, so that it must not be destroyed. On the loop, when no post() can begin
  // any more. relaxed: the lock that ended the posts has ordered them before, and only this thread clears the mark.
  bool posted() const { return posted_.load(std::memory_order_relaxed); }

 private:
  void arrive() override LOOP_ONLY {
    // A read-modify-write: a plain store might be delayed behind the reads of `arrived`.
    posted_.exchange(false, std::memory_order_acq_rel);
    arrived_();
  }

  Loop& loop_;
  const Bound arrived_;
  Atomic<bool> posted_{false};
};

}  // namespace carpool::exec
