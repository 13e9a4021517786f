// Executors: the threads of the process, made from [threads]: the pool, the reserve that takes loops over, and the
// executor for work that never touches a loop. Every loop's Driver draws on it; see docs/execution.md.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

class Executors final : private exec::FailureSink {
 public:
  // `loops` get a thread each on top of threads.max; `cores` decide how many are kept in reserve.
  Executors(const config::Threads& settings, unsigned loops, unsigned cores);
  ~Executors();  // stop() must have said true, or nothing was started

  // A Fault: the machine gives no threads.
  Status start();
  // After the loops have stopped. Bounded by `timeout`. False: a task does not end; threads are left that must not find
  // what they work on destroyed, so the process has to end as it is.
  bool stop(Duration timeout);

  // For loop number `loop`; `name` lives as long as the process.
  std::unique_ptr<exec::Driver> make_driver(exec::UvLoop& loop, exec::TurnHost& host, const char* name);

  // Work that never touches a loop (compression, fsync): any thread. False: too many tasks exist; it was closed.
  bool in_background(exec::TaskPtr task);

  metrics::ExecSample sample() const;
  admin::ThreadsInfo facts() const;

 private:
  void on_task_failed(const char* task, const char* why) noexcept override;
  exec::StrategyCounts strategies() const;

  const config::Threads settings_;
  exec::TaskLimit tasks_;
  exec::ThreadPool pool_;
  exec::ThreadPool::Lease loops_;
  exec::TaskSource from_loops_;
  exec::ReservedThreads reserve_;
  exec::TaskExecutor background_;
  mutable std::mutex mutex_;
  std::vector<const exec::Driver*> drivers_;  // guarded by mutex_; they end after every scrape
};

}  // namespace carpool::proxy
