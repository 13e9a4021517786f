// Strategy: how what a Producer produces is consumed, after Jetty's ExecutionStrategy ("eat what you kill").
//
// The producer's role is held by one thread at a time. The holder produces a task and consumes it by one of four modes:
//   PC   produce, consume        runs it here, then produces on
//   PIC  produce, invoke         the same for a task that may be run either way, told not to block
//   PEC  produce, execute        queues it for another thread and produces on
//   EPC  execute, produce        gives the role to another thread and runs it here, with warm caches; then competes for
//                                the role again
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "exec/handover_pace.h"
#include "exec/mutex.h"
#include "exec/strategy_word.h"
#include "exec/task.h"
#include "metrics/counter.h"

namespace carpool::exec {

class Producer {
 public:
  // The next task; null: there is none now. One thread at a time, each sees what the one before did.
  virtual TaskPtr produce() = 0;

 protected:
  ~Producer() = default;
};

enum class StrategyMode : std::uint8_t {
  produce_consume,          // PC always
  produce_execute_consume,  // PEC, but never for what cannot block
  execute_produce_consume,  // EPC by a queued helper
  adaptive,                 // EPC where a thread is free at this moment and comes in time, else PEC
};

// A reader may see sums that no instant had. tasks: pc + pic + pec + epc.
struct StrategyCounts {
  std::uint64_t pc = 0, pic = 0, pec = 0, epc = 0;
  std::uint64_t took_over = 0;  // hand-overs that found the role free
  std::uint64_t noop = 0;       // hand-overs that came too late to be of use
  std::uint64_t missed = 0;     // hand-overs that no thread was free for
  std::uint64_t paused = 0;     // hand-overs that were not tried, as the last one came late (exec/handover_pace.h)
  std::uint64_t rejected = 0;   // tasks that were closed because nobody would run them
  std::uint64_t failed = 0;     // tasks and produces that threw

  std::uint64_t tasks() const { return pc + pic + pec + epc; }
  StrategyCounts& operator+=(const StrategyCounts& other);
  StrategyCounts& operator-=(const StrategyCounts& other);
};

class Strategy {
 public:
  // `helpers` may be null where the mode has no use for it. All must outlive the strategy, and every thread that runs
  // it or its helpers must be gone before it dies.
  Strategy(StrategyMode mode, Producer& producer, Executor& executor, TryExecutor* helpers, FailureSink* failures,
           Instant (*now)() = Clock::now);
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  ~Strategy();

  // There may be something to produce: this thread does it, unless another one is at it and will look again.
  void produce();
  // As produce(), on some other thread. False: no thread will ever come.
  bool dispatch();

  StrategyMode mode() const { return mode_; }
  StrategyCounts counts() const;
  // Begins to count from here.
  void reset();

 private:
  enum class Consumption : std::uint8_t { pc, pic, pec, epc };
  class HelperTask final : public Task {
   public:
    HelperTask(Strategy& strategy, StrategyWord::Helper kind) : strategy_(strategy), kind_(kind) {}
    const char* name() const override { return "producing"; }

   private:
    void run() override { strategy_.help(kind_); }
    void close() override { strategy_.word_.drop(kind_); }
    Strategy& strategy_;
    const StrategyWord::Helper kind_;
  };

  void run();
  void help(StrategyWord::Helper kind);
  TaskPtr next();
  Consumption choose(Invocation invocation, bool may_lend) const;
  bool consume(TaskPtr task, bool may_lend);
  bool lend(TaskPtr task);
  bool hand_over();
  bool may_hand_over();
  void note_taken();
  bool ask_for_helper();
  void execute(TaskPtr task);
  void invoke(TaskPtr task);
  void run_here(TaskPtr task);
  StrategyCounts raw() const;

  const StrategyMode mode_;
  Producer& producer_;
  Executor& executor_;
  TryExecutor* const helpers_;
  FailureSink* const failures_;
  Instant (*const now_)();
  HelperTask handed_{*this, StrategyWord::handed};
  HelperTask queued_{*this, StrategyWord::queued};
  alignas(64) StrategyWord word_;

  // Written by the holder of the role, so each has one writer at a time.
  metrics::Cell pc_, pic_, pec_, took_over_, paused_, rejected_;
  HandoverPace pace_;
  // Written by anybody.
  std::atomic<std::uint64_t> epc_{0}, noop_{0}, missed_{0}, failed_{0};
  mutable Mutex resets_;
  StrategyCounts base_ GUARDED_BY(resets_);  // what reset() takes off
};

}  // namespace carpool::exec
