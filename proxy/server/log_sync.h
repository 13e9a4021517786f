// LogSync: [log] sync. fdatasync takes milliseconds, sometimes seconds, and touches no loop: it runs in the background.
// The next one starts a period after the last one ended, so a slow disk gets fewer of them.
#pragma once

#include "exec/loop.h"
#include "exec/task.h"
#include "exec/timer.h"

namespace carpool::proxy {

class Executors;

class LogSync final : private exec::Task, private exec::Mail {
 public:
  // Must be constructed before the loop runs.
  LogSync(exec::Loop& loop, Executors& executors, Duration period);

 private:
  const char* name() const override { return "log sync"; }
  void run() override;
  void close() override { loop_.post(*this); }
  void arrive() override LOOP_ONLY { timer_.arm(loop_.now() + period_); }
  void due();
  exec::Loop& loop_;
  Executors& executors_;
  const Duration period_;
  exec::Timer timer_;
};

}  // namespace carpool::proxy
