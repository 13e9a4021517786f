// LogSync: implements [log] sync. fdatasync takes milliseconds, sometimes seconds, and touches no loop, so it runs in
// the background.
#pragma once

#include "exec/periodic_task.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

class LogSync final : private exec::PeriodicTask::Work {
 public:
  // Must be constructed before the loop runs.
  LogSync(exec::Loop& loop, exec::Executor& background, Duration period) : cycle_(loop, background, *this, period) {}
  void stop() LOOP_ONLY { cycle_.stop(); }

 private:
  const char* name() const override { return "log sync"; }
  void work() override { log::sync(); }
  exec::PeriodicTask cycle_;
};

}  // namespace carpool::proxy
