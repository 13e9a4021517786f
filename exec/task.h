// Task: one unit of work with its data, and whether running it may block.
//
// A TaskPtr owns a task until it is started: run_task() releases it and calls run(), after which the task owns itself.
// A TaskPtr destroyed before that rejects the task: close() informs it (a task that holds a connection closes it), then
// dispose() frees it. So every task is either run or closed, never both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace carpool::exec {

// The effect of running a task on its thread.
enum class Invocation : std::uint8_t {
  blocking,      // may wait or compute for long: the thread produces nothing meanwhile
  non_blocking,  // never blocks: runs where it was produced
  either,        // may do either; inside a NonBlockingCall it must not block, and it is never queued
};

class FailureSink;
class Task;
class TaskLimit;
class TaskSource;

struct RejectTask {
  void operator()(Task* task) const;
};
using TaskPtr = std::unique_ptr<Task, RejectTask>;

// Runs the task here. Returns false if it threw; the exception goes to `sink`, which may be null.
bool run_task(TaskPtr task, FailureSink* sink) noexcept;

class Task {
 public:
  virtual Invocation invocation() const { return Invocation::blocking; }
  // Shown in thread dumps; must live as long as the process.
  virtual const char* name() const = 0;

  // Returns the time at which the task was last queued.
  Instant asked_at() const { return asked_at_; }
  void asked_at(Instant now) { asked_at_ = now; }

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 protected:
  Task() = default;
  ~Task() = default;

 private:
  friend struct RejectTask;
  friend class TaskQueue;
  friend class ThreadPool;
  friend class TaskLimit;
  friend void start_task(Task& task);
  friend bool run_task(TaskPtr task, FailureSink* sink) noexcept;
  static void count_off(TaskLimit* limit);

  // Called once. Afterwards the task owns itself: it deletes itself, posts itself or stays where it is.
  virtual void run() = 0;
  // Called instead of run() if the task was rejected.
  virtual void close() {}
  // Called after close(). Embedded tasks have nothing to do here.
  virtual void dispose() {}

  Task* next_ = nullptr;  // the queue's link
  Instant asked_at_;
  TaskSource* source_ = nullptr;
  TaskLimit* limit_ = nullptr;  // counted there
};

// Returns a pointer to a task that is embedded in its owner and never deleted.
inline TaskPtr lend(Task& task) {
  return TaskPtr(&task);
}

inline void start_task(Task& task) {
  task.run();
}

// A heap-allocated blocking task: `make_task("gzip", [data = std::move(data)] { … })`. Deleted after it has run or was
// rejected.
template <class Work>
class HeapTask final : public Task {
 public:
  HeapTask(const char* name, Invocation invocation, Work work)
      : name_(name), invocation_(invocation), work_(std::move(work)) {}
  Invocation invocation() const override { return invocation_; }
  const char* name() const override { return name_; }

 private:
  void run() override {
    const std::unique_ptr<HeapTask> dies(this);
    work_();
  }
  void dispose() override { const std::unique_ptr<HeapTask> dies(this); }

  const char* name_;
  Invocation invocation_;
  Work work_;
};

template <class Work>
TaskPtr make_task(const char* name, Work work, Invocation invocation = Invocation::blocking) {
  return TaskPtr(std::make_unique<HeapTask<Work>>(name, invocation, std::move(work)).release());
}

// Receives the exceptions of tasks, on the thread on which they were thrown; must not throw.
class FailureSink {
 public:
  virtual void on_task_failed(const char* task, const char* why) noexcept = 0;

 protected:
  ~FailureSink() = default;
};

// Accepts any number of tasks and runs each once on some thread.
class Executor {
 public:
  // Returns false if the task was rejected; it is closed then.
  virtual bool execute(TaskPtr task) = 0;

 protected:
  ~Executor() = default;
};

// Runs a task only if a thread is free now.
class TryExecutor {
 public:
  // Never waits. Returns true if that thread runs the task at once; otherwise `task` is still the caller's.
  virtual bool try_execute(TaskPtr& task) = 0;

 protected:
  ~TryExecutor() = default;
};

// An intrusive FIFO that owns its tasks and allocates nothing.
class TaskQueue {
 public:
  TaskQueue() = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue() { clear(); }  // the remaining tasks are closed

  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  void push(TaskPtr task);
  TaskPtr pop();  // null if empty
  void clear();
  void swap(TaskQueue& other);
  template <class Function>
  void visit(Function function) const {
    for (const Task* task = first_; task != nullptr; task = task->next_) function(*task);
  }

 private:
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  std::size_t size_ = 0;
};

// While it exists, this thread must not block. A producer inside such a call neither blocks nor lends the thread, so
// strategies can be nested.
class NonBlockingCall {
 public:
  NonBlockingCall();
  ~NonBlockingCall();
  NonBlockingCall(const NonBlockingCall&) = delete;
  NonBlockingCall& operator=(const NonBlockingCall&) = delete;
  static bool active();

 private:
  bool before_;
};

}  // namespace carpool::exec
