// Driver: a loop, the strategy that turns it and the way onto a thread: what a worker has instead of a thread of its
// own. The loop's role begins on a leased thread and moves from there to whichever thread takes it over.
#pragma once

#include <cstddef>

#include "exec/strategy.h"
#include "exec/submitter.h"
#include "exec/task_limit.h"
#include "exec/thread_pool.h"
#include "exec/uv/loop_producer.h"

namespace carpool::exec {

// What surrounds a loop's turns: thread-local notes of whose loop this is must follow the loop when it moves.
class TurnHost {
 public:
  virtual void enter() = 0;  // the calling thread turns the loop from here on
  virtual void leave() = 0;  // … and no more

 protected:
  ~TurnHost() = default;
};

struct DriverParts {
  UvLoop& loop;
  TurnHost& host;
  const char* name;  // in dumps; lives as long as the process
  StrategyMode mode;
  ThreadPool& pool;
  Executor& executor;    // PEC goes there
  TryExecutor* helpers;  // EPC comes from there; null: none
  TaskLimit& tasks;
  FailureSink* failures;
};

class Driver final : public Submitter, private Producer {
 public:
  explicit Driver(const DriverParts& parts);

  bool submit(TaskPtr task) override LOOP_ONLY;

  // Once. False: no leased place is free or no thread can be started.
  bool start();
  // Any thread, once. The loop turns until this arrives, then hands out what it collected.
  void stop() { producer_.stop(); }
  void wait_until_stopped() { producer_.wait_until_stopped(); }

  StrategyCounts counts() const { return strategy_.counts(); }
  StrategyMode mode() const { return strategy_.mode(); }

 private:
  struct Begin final : Task {
    explicit Begin(Driver& d) : driver(d) {}
    const char* name() const override { return driver.name_; }
    void run() override { driver.strategy_.produce(); }
    Driver& driver;
  };
  TaskPtr produce() override;

  TurnHost& host_;
  const char* const name_;
  ThreadPool& pool_;
  TaskLimit& tasks_;
  LoopProducer producer_;
  Strategy strategy_;
  Begin begin_{*this};
};

}  // namespace carpool::exec
