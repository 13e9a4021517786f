// Driver: a loop, the strategy that runs it and its start on a thread, in place of a dedicated thread per worker. The
// loop's role starts on a leased thread and moves from there to whichever thread takes it over.
#pragma once

#include <cstddef>

#include "exec/strategy.h"
#include "exec/submitter.h"
#include "exec/task_limit.h"
#include "exec/thread_pool.h"
#include "exec/uv/loop_producer.h"

namespace carpool::exec {

// Called around a loop's turns: thread-local state of the loop must follow it when it moves.
class TurnHost {
 public:
  virtual void enter() = 0;  // the calling thread runs the loop from here on
  virtual void leave() = 0;  // it no longer runs the loop

 protected:
  ~TurnHost() = default;
};

struct DriverParts {
  UvLoop& loop;
  TurnHost& host;
  const char* name;  // shown in dumps; lives as long as the process
  StrategyMode mode;
  ThreadPool& pool;
  Executor& executor;    // for PEC
  TryExecutor* helpers;  // for EPC; null: none
  TaskLimit& tasks;
  FailureSink* failures;
};

class Driver final : public Submitter, private Producer {
 public:
  explicit Driver(const DriverParts& parts);

  bool submit(TaskPtr task) override LOOP_ONLY;

  // Called once. Returns false if no leased place is free or no thread can be started.
  bool start();
  // May be called on any thread, once. The loop runs until this arrives, then returns the tasks that it collected.
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
