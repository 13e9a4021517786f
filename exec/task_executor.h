// TaskExecutor: runs named tasks within limits on their number and concurrency, on the threads of a pool: the role of
// Java's virtual threads, with the limits that those lack. Each task is listed by name until it has ended.
//
// The permit to run is an object, a Runner, so one that was never taken cannot be returned.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "exec/task.h"
#include "exec/thread_pool.h"

namespace carpool::exec {

struct TaskExecutorOptions {
  unsigned max_tasks = 200;  // existing tasks: queued and running
  unsigned max_running = 4;
  const char* name = "tasks";
  FailureSink* failures = nullptr;
};

struct TaskInfo {
  const char* name = "";
  bool running = false;
  Instant since;  // since when it runs or waits
};

struct TaskExecutorCounts {
  unsigned queued = 0, running = 0;
  std::uint64_t executed = 0, rejected = 0, failed = 0;
  unsigned max_tasks = 0, max_running = 0;
};

class TaskExecutor final : public Executor, public TryExecutor {
 public:
  TaskExecutor(ThreadPool& pool, TaskExecutorOptions options);
  TaskExecutor(const TaskExecutor&) = delete;
  TaskExecutor& operator=(const TaskExecutor&) = delete;
  ~TaskExecutor();  // stop(), then waits for running tasks

  // Never waits. Returns false, and closes the task, if max_tasks exist or stop() was called.
  bool execute(TaskPtr task) override;
  // As execute(), but a rejected task remains the caller's.
  bool try_execute(TaskPtr& task) override;
  // Rejects new tasks and closes those that have not started.
  void stop();
  // Waits until no task exists. Returns false at `deadline`. Must not be called from one of its tasks.
  bool join(Instant deadline);

  TaskExecutorCounts counts() const;
  std::vector<TaskInfo> dump() const;
  // Returns how long tasks waited behind max_running others before they started.
  metrics::HistogramTotals queue_wait() const { return queue_wait_.read(); }
  const TaskSource& source() const { return source_; }

 private:
  class Runner;
  Runner* admit(TaskPtr& task, bool& taken);
  void run(Runner& runner);
  void reject(Runner& runner);
  TaskPtr following(Runner& runner, bool failed);
  void give_back(Runner& runner, TaskQueue& lost) REQUIRES(mutex_);

  const TaskExecutorOptions options_;
  TaskSource source_;
  mutable Mutex mutex_;
  std::condition_variable_any ended_;
  std::unique_ptr<Runner[]> runners_;
  Runner* free_ GUARDED_BY(mutex_) = nullptr;
  TaskQueue queue_ GUARDED_BY(mutex_);
  metrics::Histogram queue_wait_;  // written under mutex_, read by any thread
  bool stopped_ GUARDED_BY(mutex_) = false;
  unsigned running_ GUARDED_BY(mutex_) = 0;
  std::uint64_t executed_ GUARDED_BY(mutex_) = 0, rejected_ GUARDED_BY(mutex_) = 0, failed_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::exec
