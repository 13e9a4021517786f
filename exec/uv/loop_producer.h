// LoopProducer: a UvLoop as a Producer. To produce is to turn the loop; what its events want done elsewhere, because it
// may block, is collected during the turn and handed out one by one.
//
// Readiness, timers and mail are consumed inside the turn, on the producer's thread with warm caches: they are the
// non-blocking tasks, and cost nothing here. The role moves to another thread between turns only, with what is left of
// the collected tasks: a whole batch is handed over, not one task.
#pragma once

#include <condition_variable>
#include <cstddef>

#include "exec/mutex.h"
#include "exec/strategy.h"
#include "exec/uv/loop.h"

namespace carpool::exec {

class LoopProducer final : public Producer {
 public:
  // At most `limit` tasks may be collected and not handed out. `failures`, if any, is told of the loop's callbacks that
  // throw.
  LoopProducer(UvLoop& loop, std::size_t limit, FailureSink* failures);
  LoopProducer(const LoopProducer&) = delete;
  LoopProducer& operator=(const LoopProducer&) = delete;

  // From the loop's callbacks: `task` is handed out when this turn is over. False: the limit is reached, it was closed.
  bool submit(TaskPtr task) LOOP_ONLY;

  // Any thread, once. The loop turns until this arrives, then hands out what it collected, then produces nothing any
  // more.
  void stop();
  // Waits until that is so. Threads may still run tasks, or come as helpers: their pool is stopped before this dies.
  void wait_until_stopped();

  TaskPtr produce() override;

 private:
  struct Stop final : Mail {
    explicit Stop(LoopProducer& p) : producer(p) {}
    void arrive() override LOOP_ONLY { producer.stopping_ = true; }
    LoopProducer& producer;
  };

  UvLoop& loop_;
  const std::size_t limit_;
  TaskQueue collected_ LOOP_LOCAL;
  bool stopping_ LOOP_LOCAL = false;
  Stop stop_{*this};
  // Not an atomic that one waits for: the thread of main() waits here, TSan gives it a signal only in a wait that it
  // knows, and a program under TSan is to end by one too.
  Mutex mutex_;
  std::condition_variable_any wakes_;
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace carpool::exec
