// LoopProducer: a UvLoop as a Producer. produce() runs a turn of the loop; tasks that may block are collected during
// the turn and returned one by one.
//
// Readiness, timers and mail are handled inside the turn, on the producer's thread with warm caches: they are the
// non-blocking tasks and cost nothing here. The role moves to another thread only between turns, with the remaining
// collected tasks: a whole batch is handed over, not one task.
#pragma once

#include <condition_variable>
#include <cstddef>

#include "base/mutex.h"
#include "exec/strategy.h"
#include "exec/uv/loop.h"

namespace carpool::exec {

class LoopProducer final : public Producer {
 public:
  // At most `limit` collected tasks may be pending. `failures`, if not null, receives the exceptions of the loop's
  // callbacks.
  LoopProducer(UvLoop& loop, std::size_t limit, FailureSink* failures);
  LoopProducer(const LoopProducer&) = delete;
  LoopProducer& operator=(const LoopProducer&) = delete;

  // Called from the loop's callbacks: `task` is produced after this turn. Returns false at the limit; the task was
  // closed.
  bool submit(TaskPtr task) LOOP_ONLY;

  // May be called on any thread, once. The loop runs until this arrives, then returns the collected tasks and produces
  // nothing any more.
  void stop();
  // Waits until that is done. Threads may still run tasks or helpers: stop their pool before destroying this. A task
  // that a thread still holds is run, or closed if its pool stops first.
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
  // Not an atomic wait: main()'s thread waits here, TSan delivers a signal only in a wait that it intercepts, and a
  // program under TSan must also be stoppable by a signal.
  Mutex mutex_;
  std::condition_variable_any wakes_;
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace carpool::exec
