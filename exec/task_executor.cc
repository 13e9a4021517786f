#include "exec/task_executor.h"

#include "base/assert.h"

namespace carpool::exec {

// A permit to run. On a thread of the pool it runs its first task, then queued ones until there are none.
class TaskExecutor::Runner final : public Task {
 public:
  const char* name() const override { return owner->options_.name; }

  TaskExecutor* owner = nullptr;
  Runner* next_free = nullptr;
  TaskPtr first;                   // the task it was created with
  const char* activity = nullptr;  // null: nothing; guarded by the lock
  Instant since;

 private:
  void run() override { owner->run(*this); }
  void close() override {
    const TaskPtr refused = std::move(first);
    owner->reject(*this);
  }
};

TaskExecutor::TaskExecutor(ThreadPool& pool, TaskExecutorOptions options)
    : options_(options),
      source_(pool, options.name, options.max_running),
      runners_(std::make_unique<Runner[]>(options.max_running)) {
  CARPOOL_ASSERT(options.max_running > 0 && options.max_tasks >= options.max_running);
  for (unsigned i = options.max_running; i-- > 0;) {
    runners_[i].owner = this;
    runners_[i].next_free = free_;
    free_ = &runners_[i];
  }
}

TaskExecutor::~TaskExecutor() {
  stop();
  static_cast<void>(join(kNever));
}

bool TaskExecutor::execute(TaskPtr task) {
  return try_execute(task);  // a rejected task is destroyed here
}

bool TaskExecutor::try_execute(TaskPtr& task) {
  bool taken = false;
  Runner* runner = admit(task, taken);
  if (runner == nullptr) return taken;
  TaskPtr launched = lend(*runner);
  if (source_.try_execute(launched)) return true;
  static_cast<void>(launched.release());  // it was never the pool's: its close() must not close `task`
  task = std::move(runner->first);
  reject(*runner);
  return false;
}

// Called when the pool rejected `runner`, or closed it before it ran.
void TaskExecutor::reject(Runner& runner) {
  TaskQueue lost;
  const Held held(mutex_);
  ++rejected_;
  give_back(runner, lost);
}

// Returns a runner with `task` as its first, which the caller launches. Otherwise `taken` is true if the task was
// queued.
TaskExecutor::Runner* TaskExecutor::admit(TaskPtr& task, bool& taken) {
  const Held held(mutex_);
  taken = !stopped_ && running_ + queue_.size() < options_.max_tasks;
  if (!taken) {
    ++rejected_;
    return nullptr;
  }
  task->asked_at(Clock::now());
  if (free_ == nullptr) {
    queue_.push(std::move(task));
    return nullptr;
  }
  Runner* runner = free_;
  free_ = runner->next_free;
  ++running_;
  runner->activity = task->name();
  runner->since = task->asked_at();
  runner->first = std::move(task);
  return runner;
}

void TaskExecutor::run(Runner& runner) {
  TaskPtr task = std::move(runner.first);
  while (task != nullptr) {
    const ThreadPool::ScopedActivity activity(task->name());
    const bool ran = run_task(std::move(task), options_.failures);
    task = following(runner, !ran);
  }
}

// Returns the runner's next task; null: it has returned its permit and must not be touched.
TaskPtr TaskExecutor::following(Runner& runner, bool failed) {
  TaskQueue lost;
  const Held held(mutex_);
  ++executed_;
  if (failed) ++failed_;
  TaskPtr task = queue_.pop();
  if (task != nullptr) {
    runner.activity = task->name();
    runner.since = Clock::now();
    queue_wait_.observe(runner.since - task->asked_at());
  } else {
    give_back(runner, lost);
  }
  return task;
}

void TaskExecutor::give_back(Runner& runner, TaskQueue& lost) {
  runner.activity = nullptr;
  runner.next_free = free_;
  free_ = &runner;
  --running_;
  if (running_ == 0) {
    rejected_ += queue_.size();
    lost.swap(queue_);  // no runner is left to run them: the pool rejected the last one
    ended_.notify_all();
  }
}

void TaskExecutor::stop() {
  TaskQueue closed;
  const Held held(mutex_);
  stopped_ = true;
  rejected_ += queue_.size();
  closed.swap(queue_);
}

bool TaskExecutor::join(Instant deadline) {
  const Held held(mutex_);
  while (running_ > 0) {
    if (deadline == kNever) {
      ended_.wait(mutex_);
    } else if (ended_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      break;
    }
  }
  return running_ == 0;
}

TaskExecutorCounts TaskExecutor::counts() const {
  const Held held(mutex_);
  return {.queued = static_cast<unsigned>(queue_.size()),
          .running = running_,
          .executed = executed_,
          .rejected = rejected_,
          .failed = failed_,
          .max_tasks = options_.max_tasks,
          .max_running = options_.max_running};
}

std::vector<TaskInfo> TaskExecutor::dump() const {
  std::vector<TaskInfo> all;
  all.reserve(options_.max_tasks);
  const Held held(mutex_);
  for (unsigned i = 0; i < options_.max_running; ++i) {
    if (runners_[i].activity != nullptr) all.push_back({runners_[i].activity, true, runners_[i].since});
  }
  queue_.visit([&all](const Task& task) { all.push_back({task.name(), false, task.asked_at()}); });
  return all;
}

}  // namespace carpool::exec
