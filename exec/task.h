// Task: one piece of work with its data in it, and what it says of itself: whether running it may block.
//
// A TaskPtr owns a task until somebody starts it: run_task() lets go and calls run(), after which the task belongs to
// itself. A TaskPtr that dies without that has rejected its task: close() tells it (a task that holds a connection
// closes it), then dispose() takes it back. So no task is ever forgotten, and none is both run and closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"

namespace carpool::exec {

// What running something may do to its thread.
enum class Invocation : std::uint8_t {
  blocking,      // it may wait or compute long: the thread that runs it produces nothing meanwhile
  non_blocking,  // never: it runs where it was produced
  either,        // both are possible; run inside a NonBlockingCall it must not block, and is never queued
};

class FailureSink;
class Task;
class TaskLimit;
class TaskSource;

struct RejectTask {
  void operator()(Task* task) const;
};
using TaskPtr = std::unique_ptr<Task, RejectTask>;

// Runs it here. False: it threw; the thread and its production live on. `sink` may be null.
bool run_task(TaskPtr task, FailureSink* sink) noexcept;

class Task {
 public:
  virtual Invocation invocation() const { return Invocation::blocking; }
  // What a dump of the threads shows; alive as long as the process.
  virtual const char* name() const = 0;

  // When who queued it last got it.
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

  // Once. Afterwards nobody but the task itself knows it: it deletes itself, posts itself or stays where it is.
  virtual void run() = 0;
  // Instead of run(): nobody will run it.
  virtual void close() {}
  // After close(). A task that its owner embeds has nothing to do here.
  virtual void dispose() {}

  Task* next_ = nullptr;  // the queue's
  Instant asked_at_;
  TaskSource* source_ = nullptr;
  TaskLimit* limit_ = nullptr;  // it counts there
};

// A task that its owner embeds: lent, never deleted.
inline TaskPtr lend(Task& task) {
  return TaskPtr(&task);
}

inline void start_task(Task& task) {
  task.run();
}

// Work of its own on the heap, for blocking tasks: `make_task("gzip", [data = std::move(data)] { … })`. Deleted when it
// has run, or when nobody will run it.
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

// Learns of a task that threw: what it was and why. On the thread it happened; must not throw.
class FailureSink {
 public:
  virtual void on_task_failed(const char* task, const char* why) noexcept = 0;

 protected:
  ~FailureSink() = default;
};

// Takes any number of tasks, each to be run once on some thread, soon.
class Executor {
 public:
  // False: nobody will run it; it has been closed.
  virtual bool execute(TaskPtr task) = 0;

 protected:
  ~Executor() = default;
};

// Knows whether a thread is free right now, for this one task alone.
class TryExecutor {
 public:
  // Never waits. True: that thread runs it at once. False: `task` is still the caller's.
  virtual bool try_execute(TaskPtr& task) = 0;

 protected:
  ~TryExecutor() = default;
};

// Intrusive first-in first-out; owns what is in it, allocates nothing.
class TaskQueue {
 public:
  TaskQueue() = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue() { clear(); }  // what is left is closed

  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  void push(TaskPtr task);
  TaskPtr pop();  // null when it is empty
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

// While one lives, this thread promised its caller not to block. A producer that finds itself in such a call neither
// blocks nor lends the thread out: strategies can be stacked on each other without the last one being eaten.
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
