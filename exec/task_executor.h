// TaskExecutor: what Java has virtual threads for, with the limits that those lack. So many tasks may exist, so many of
// them run at a time on the threads of a pool; each is known by name from the moment it is taken until it has ended.
//
// The permit to run is an object, a Runner: one that was never taken cannot be given back.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/mutex.h"
#include "exec/task.h"
#include "exec/thread_pool.h"

namespace carpool::exec {

struct TaskExecutorOptions {
  unsigned max_tasks = 200;  // that exist: queued and running
  unsigned max_running = 4;
  const char* name = "tasks";
  FailureSink* failures = nullptr;
};

struct TaskInfo {
  const char* name = "";
  bool running = false;
  Instant since;  // it runs, or waits
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
  ~TaskExecutor();  // stop(), and waits for what runs

  // Never waits. False, and closed: as many exist as may, or this was stopped.
  bool execute(TaskPtr task) override;
  // As execute(), but a refused task stays the caller's.
  bool try_execute(TaskPtr& task) override;
  // Takes no more; what has not begun is closed.
  void stop();
  // Waits until no task exists. False: `deadline` came first. Not from one of its tasks.
  bool join(Instant deadline);

  TaskExecutorCounts counts() const;
  std::vector<TaskInfo> dump() const;
  // How long tasks waited to begin once a thread was theirs to wait for: behind max_running others.
  metrics::HistogramTotals queue_wait() const { return queue_wait_.read(); }
  const TaskSource& source() const { return source_; }

 private:
  class Runner;
  Runner* admit(TaskPtr& task, bool& taken);
  void run(Runner& runner);
  void reject(Runner& runner);
  TaskPtr following(Runner& runner, bool failed);
  void give_back(Runner& runner, TaskQueue& lost) HOLDS(mutex_);

  const TaskExecutorOptions options_;
  TaskSource source_;
  mutable Mutex mutex_;
  std::condition_variable_any ended_;
  std::unique_ptr<Runner[]> runners_;
  Runner* free_ GUARDED_BY(mutex_) = nullptr;
  TaskQueue queue_ GUARDED_BY(mutex_);
  metrics::Histogram queue_wait_;  // written under mutex_, read by anybody
  bool stopped_ GUARDED_BY(mutex_) = false;
  unsigned running_ GUARDED_BY(mutex_) = 0;
  std::uint64_t executed_ GUARDED_BY(mutex_) = 0, rejected_ GUARDED_BY(mutex_) = 0, failed_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::exec
