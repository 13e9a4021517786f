// UntrackedWatch: searches for connections that are in no pool every ten seconds, in the background, and reports each
// once.
#pragma once

#include <cstdint>

#include "exec/periodic_task.h"
#include "proxy/upstream/untracked_connections.h"

namespace carpool::proxy {

class LeakLog;

class UntrackedWatch final : private exec::PeriodicTask::Work {
 public:
  // Must be constructed before the loop runs.
  UntrackedWatch(exec::Loop& loop, exec::Executor& background, const pool::Directory& directory, LeakLog& leaks);
  void stop() LOOP_ONLY { cycle_.stop(); }
  std::uint64_t count() const { return connections_.count(); }  // any thread

 private:
  const char* name() const override { return "looking for untracked connections"; }
  void work() override;

  const pool::Directory& directory_;
  LeakLog& leaks_;
  UntrackedConnections connections_;
  exec::PeriodicTask cycle_;
};

}  // namespace carpool::proxy
