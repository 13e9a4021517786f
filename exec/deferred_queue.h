// DeferredQueue: the work that a turn deferred to its end. Each Deferred runs at most once per turn: one that is pushed
// again from its own run() waits for the next turn, so other sockets are served first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/callback_guard.h"
#include "exec/loop.h"

namespace carpool::exec {

class DeferredQueue {
 public:
  // Enqueues `work` once, however often it is pushed. unlink() removes it.
  void push(Deferred& work) {
    if (!work.linked()) queue_.push_back(work);
  }
  bool empty() const { return queue_.empty(); }
  // Runs the work, including what is enqueued meanwhile, up to `limit` runs; the rest stays queued.
  std::size_t run_turn(std::size_t limit, CallbackGuard& guard) LOOP_ONLY;
  // As above without a guard: throws the first exception after all have run.
  std::size_t run_turn(std::size_t limit) LOOP_ONLY;

 private:
  List<Deferred, DeferredTag> queue_;
  std::uint32_t turn_ = 0;  // wraps: an accidental match delays the work by one turn
};

}  // namespace carpool::exec
