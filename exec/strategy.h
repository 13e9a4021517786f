// Strategy: how the tasks of a Producer are run, after Jetty's ExecutionStrategy ("eat what you kill").
//
// One thread at a time holds the producer role. The holder produces a task and runs it in one of four modes:
//   PC   produce, consume        runs it, then continues to produce
//   PIC  produce, invoke         the same for a task that may either block or not, invoked as non-blocking
//   PEC  produce, execute        queues it for another thread and continues to produce
//   EPC  execute, produce        hands the role to another thread and runs the task, with warm caches; then
//                                competes for the role again
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "exec/handover_pace.h"
#include "exec/strategy_word.h"
#include "exec/task.h"
#include "metrics/counter.h"

namespace carpool::exec {

class Producer {
 public:
  // Returns the next task, or null if there is none now. One thread at a time; each sees its predecessor's writes.
  virtual TaskPtr produce() = 0;

 protected:
  ~Producer() = default;
};

enum class StrategyMode : std::uint8_t {
  produce_consume,          // PC always
  produce_execute_consume,  // PEC, except for non-blocking tasks
  execute_produce_consume,  // EPC by a queued helper
  adaptive,                 // EPC if a thread is free now and hand-overs are in time, else PEC
};

// The counts are not read at one instant. tasks: pc + pic + pec + epc.
struct StrategyCounts {
  std::uint64_t pc = 0, pic = 0, pec = 0, epc = 0;
  std::uint64_t took_over = 0;  // hand-overs that found the role free
  std::uint64_t noop = 0;       // hand-overs that arrived too late
  std::uint64_t missed = 0;     // hand-overs without a free thread
  std::uint64_t paused = 0;     // hand-overs not tried because the last one was late (exec/handover_pace.h)
  std::uint64_t rejected = 0;   // tasks closed because they were rejected
  std::uint64_t failed = 0;     // tasks and produce() calls that threw

  std::uint64_t tasks() const { return pc + pic + pec + epc; }
  StrategyCounts& operator+=(const StrategyCounts& other);
};

// HelperObserver: notified of each helper that a strategy calls, for an owner that destroys its strategy while the
// threads continue: the strategy must outlive its helpers.
class HelperObserver {
 public:
  virtual void helper_called() = 0;
  virtual void helper_finished() = 0;  // the helper's last access to the strategy has been made

 protected:
  ~HelperObserver() = default;
};

// The threads and the limit that a program gives to all its strategies.
struct StrategyParts {
  StrategyMode mode;
  Executor& executor;    // for PEC
  TryExecutor* helpers;  // for EPC; null: none
  TaskLimit& tasks;      // of all blocking tasks
  FailureSink* failures;
};

class Strategy {
 public:
  // `helpers` may be null if the mode does not need it. All must outlive the strategy, which must outlive every thread
  // that runs it or its helpers.
  Strategy(StrategyMode mode, Producer& producer, Executor& executor, TryExecutor* helpers, FailureSink* failures,
           Instant (*now)() = Clock::now, HelperObserver* observer = nullptr);
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  ~Strategy();

  // Produces on this thread, unless another thread does so and will check again.
  void produce();
  // As produce(), on another thread. Returns false if no thread will do so.
  bool dispatch();
  // As produce(). On a thread that runs a task of this strategy nothing is produced inside the task: the thread
  // competes for the role when the task has ended, and the current producer checks again.
  void announce();
  // Returns true if there is a producer, which will check again; otherwise nothing was done.
  bool notify_producer() { return word_.notify_producer(); }

  StrategyMode mode() const { return mode_; }
  StrategyCounts counts() const;

 private:
  enum class Consumption : std::uint8_t { pc, pic, pec, epc };
  class HelperTask final : public Task {
   public:
    HelperTask(Strategy& strategy, StrategyWord::Helper kind) : strategy_(strategy), kind_(kind) {}
    const char* name() const override { return "producing"; }

   private:
    void run() override {
      HelperObserver* const observer = strategy_.observer_;
      strategy_.help(kind_);
      if (observer != nullptr) observer->helper_finished();
    }
    void close() override { strategy_.word_.drop(kind_); }
    void dispose() override {
      if (strategy_.observer_ != nullptr) strategy_.observer_->helper_finished();
    }
    Strategy& strategy_;
    const StrategyWord::Helper kind_;
  };

  void run();
  void help(StrategyWord::Helper kind);
  TaskPtr next();
  Consumption choose(Invocation invocation, bool may_lend) const;
  bool consume(TaskPtr task, bool may_lend);
  bool run_as_epc(TaskPtr task);
  bool pass_role();
  bool may_pass_role();
  void note_role_taken();
  bool ask_for_helper();
  void execute(TaskPtr task);
  void invoke(TaskPtr task);
  void run_here(TaskPtr task);
  void call_helper() const {
    if (observer_ != nullptr) observer_->helper_called();
  }

  const StrategyMode mode_;
  Producer& producer_;
  Executor& executor_;
  TryExecutor* const helpers_;
  FailureSink* const failures_;
  Instant (*const now_)();
  HelperObserver* const observer_;
  HelperTask helper_direct_{*this, StrategyWord::direct};
  HelperTask helper_queued_{*this, StrategyWord::queued};
  alignas(64) StrategyWord word_;

  // Written by the holder of the role: one writer at a time.
  metrics::Cell pc_, pic_, pec_, took_over_, paused_, rejected_;
  HandoverPace pace_;
  // Written by any thread.
  std::atomic<std::uint64_t> epc_{0}, noop_{0}, missed_{0}, failed_{0};
};

}  // namespace carpool::exec
