// Executors: the threads of the process, created from [threads]: the thread pool, the reserved threads that take over
// loops, and the executor for work that never touches a loop. Used by every loop's Driver; see docs/execution.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "exec/reserved_threads.h"
#include "exec/task_executor.h"
#include "exec/task_limit.h"
#include "exec/thread_pool.h"
#include "exec/uv/driver.h"
#include "metrics/sample.h"
#include "proxy/config/config.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy {

class Executors final : public exec::Executor, private exec::FailureSink {
 public:
  // `loops` threads are added on top of threads.max; `cores` determines the number of reserved threads.
  Executors(const config::Threads& settings, unsigned loops, unsigned cores);
  ~Executors();  // stop() must have returned true, or start() must not have been called

  // Returns a Fault if threads cannot be created.
  Status start();
  // Must be called after the loops have stopped; waits for at most `timeout`. Returns false if a task still runs. Its
  // data must then not be destroyed, so the process has to exit without cleaning up.
  bool stop(Duration timeout);

  // Returns the driver of loop number `loop`. `name` must live as long as the process.
  std::unique_ptr<exec::Driver> make_driver(exec::UvLoop& loop, exec::TurnHost& host, const char* name);

  // Returns the parts of a strategy inside a loop's, one per connection. add_strategy() and remove_strategy() add its
  // counts to sample(); any thread.
  exec::StrategyParts connection_strategy();
  void add_strategy(const exec::Strategy& strategy);
  void remove_strategy(const exec::Strategy& strategy);

  // Runs work that never touches a loop (compression, fsync). Any thread. Returns false, with the task closed, if too
  // many tasks exist.
  bool execute(exec::TaskPtr task) override;

  metrics::ExecSample sample() const;
  admin::ThreadsInfo info() const;

 private:
  void on_task_failed(const char* task, const char* why) noexcept override;
  exec::StrategyCounts strategies() const;

  const config::Threads settings_;
  exec::TaskLimit tasks_;
  exec::ThreadPool pool_;
  exec::ThreadPool::Lease loops_;
  exec::TaskSource from_loops_;
  exec::TaskSource from_connections_;
  exec::ReservedThreads reserve_;
  exec::TaskExecutor background_;
  mutable Mutex mutex_;
  std::vector<const exec::Driver*> drivers_ GUARDED_BY(mutex_);  // they outlive every scrape
  std::vector<const exec::Strategy*> nested_ GUARDED_BY(mutex_);
  exec::StrategyCounts left_ GUARDED_BY(mutex_);  // counts of removed strategies
};

}  // namespace carpool::proxy
