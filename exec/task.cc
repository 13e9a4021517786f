#include "exec/task.h"

#include <exception>

#include "base/assert.h"
#include "exec/task_limit.h"
#include "exec/thread_pool.h"

namespace carpool::exec {
namespace {

// A property of this thread's stack: no object is reached through it.
thread_local bool promised_not_to_block = false;

}  // namespace

void Task::count_off(TaskLimit* limit) {
  if (limit != nullptr) limit->leave();
}

void RejectTask::operator()(Task* task) const {
  TaskLimit* limit = std::exchange(task->limit_, nullptr);
  task->close();
  task->dispose();
  Task::count_off(limit);
}

namespace {

void start_named(Task& task, const char* name) {
  const ThreadPool::ScopedActivity activity(name);
  start_task(task);
}

}  // namespace

bool run_task(TaskPtr task, FailureSink* sink) noexcept {
  const char* name = task->name();
  const char* why = "an exception of an unknown type";
  struct Counted {
    TaskLimit* limit;
    ~Counted() { Task::count_off(limit); }
  };
  const Counted counted{std::exchange(task->limit_, nullptr)};
  try {
    // Only counted tasks are named in dumps here; the pool names its own tasks.
    counted.limit == nullptr ? start_task(*task.release()) : start_named(*task.release(), name);
    return true;
  } catch (const std::exception& failure) {
    if (sink != nullptr) sink->on_task_failed(name, failure.what());
  } catch (...) {
    if (sink != nullptr) sink->on_task_failed(name, why);
  }
  return false;
}

void TaskQueue::push(TaskPtr task) {
  CARPOOL_ASSERT(task != nullptr && task->next_ == nullptr);
  Task* added = task.release();
  (last_ == nullptr ? first_ : last_->next_) = added;
  last_ = added;
  ++size_;
}

TaskPtr TaskQueue::pop() {
  Task* task = first_;
  if (task == nullptr) return nullptr;
  first_ = std::exchange(task->next_, nullptr);
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  return TaskPtr(task);
}

void TaskQueue::clear() {
  while (pop() != nullptr) {
  }
}

void TaskQueue::swap(TaskQueue& other) {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(size_, other.size_);
}

NonBlockingCall::NonBlockingCall() : before_(promised_not_to_block) {
  promised_not_to_block = true;
}

NonBlockingCall::~NonBlockingCall() {
  promised_not_to_block = before_;
}

bool NonBlockingCall::active() {
  return promised_not_to_block;
}

}  // namespace carpool::exec
