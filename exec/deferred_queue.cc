#include "exec/deferred_queue.h"

namespace carpool::exec {

std::size_t DeferredQueue::run_turn(std::size_t limit, CallbackGuard& guard) {
  ++turn_;
  std::size_t runs = 0;
  List<Deferred, DeferredTag> next_turn;
  while (runs < limit && !queue_.empty()) {
    Deferred& work = queue_.pop_front();
    if (work.ran_in_turn_ == turn_) {
      next_turn.push_back(work);
      continue;
    }
    work.ran_in_turn_ = turn_;
    ++runs;
    guard.call([&work]() LOOP_ONLY { work.run(); });  // may destroy itself
  }
  queue_.splice_back(next_turn);
  return runs;
}

std::size_t DeferredQueue::run_turn(std::size_t limit) {
  CallbackGuard guard;
  const std::size_t runs = run_turn(limit, guard);
  guard.rethrow();
  return runs;
}

}  // namespace carpool::exec
