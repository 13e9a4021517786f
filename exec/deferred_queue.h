// DeferredQueue: the work a turn left for its end. Each Deferred runs at most once a turn, so one that asks again from
// its own run() waits for the next turn and lets the sockets of others have theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/callback_guard.h"
#include "exec/loop.h"

namespace carpool::exec {

class DeferredQueue {
 public:
  // Queued once, however often it is asked for. unlink() takes it back.
  void push(Deferred& work) {
    if (!work.linked()) queue_.push_back(work);
  }
  bool empty() const { return queue_.empty(); }
  // What is queued meanwhile by others runs too, up to `limit` runs in all; the rest stays queued.
  std::size_t run_turn(std::size_t limit, CallbackGuard& guard) LOOP_ONLY;
  // For those who have no guard: throws the first exception when all have run.
  std::size_t run_turn(std::size_t limit) LOOP_ONLY;

 private:
  List<Deferred, DeferredTag> queue_;
  std::uint32_t turn_ = 0;  // wraps: a stamp that is equal by accident costs its work one turn
};

}  // namespace carpool::exec
