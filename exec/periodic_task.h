// PeriodicTask: blocking work that repeats. A timer of a loop starts it on another thread, mail reports its end, and
// the next round is due a pause after that, so slow work gets fewer rounds. Work that throws and work that the
// executor rejects end their round, never the cycle.
#pragma once

#include "base/assert.h"
#include "exec/loop.h"
#include "exec/task.h"
#include "exec/timer.h"

namespace carpool::exec {

class PeriodicTask final : private Task, private Mail {
 public:
  class Work {
   public:
    // Shown in thread dumps; must live as long as the process.
    virtual const char* name() const = 0;
    // Called when the round is due. Returns zero to begin it, otherwise the time until the next one is due.
    virtual Duration postpone() LOOP_ONLY { return Duration::zero(); }
    // Runs on a thread of the executor; may block and may throw.
    virtual void work() = 0;
    // Called when the round has ended, with everything that work() wrote visible. `done`: work() ran and did not throw.
    virtual void ended(bool done) LOOP_ONLY { static_cast<void>(done); }

   protected:
    ~Work() = default;
  };

  // Must be constructed before the loop runs. The first round is due after one pause.
  PeriodicTask(Loop& loop, Executor& executor, Work& work, Duration pause);
  // No round may be running: stop(), join the executor, and let the loop deliver its mail first.
  ~PeriodicTask() { CARPOOL_ASSERT(!running_); }

  // Ends the cycle: no further round begins. One that runs is not interrupted, and ended() still reports it.
  void stop() LOOP_ONLY;
  bool running() const LOOP_ONLY { return running_; }

 private:
  const char* name() const override { return work_.name(); }
  void run() override;
  void close() override { loop_.post(*this); }  // rejected
  void arrive() override LOOP_ONLY;
  void on_due();

  Loop& loop_;
  Executor& executor_;
  Work& work_;
  const Duration pause_;
  Timer timer_;
  bool running_ = false;  // from execute() to arrive()
  bool stopped_ = false;
  bool done_ = false;  // written by the round, read after its mail has arrived
};

}  // namespace carpool::exec
