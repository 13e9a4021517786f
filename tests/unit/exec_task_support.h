// exec_task_support.h: helpers of the thread tests: gates that hold a thread, tasks as lambdas, and bounded waiting.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/strategy.h"
#include "exec/task.h"
#include "exec/thread_pool.h"

namespace carpool::exec::testing {

using namespace std::chrono_literals;

// Closed until open(); afterwards any number of threads pass.
class Gate {
 public:
  void open() {
    open_.store(true, std::memory_order_release);
    open_.notify_all();
  }
  void pass() const { open_.wait(false, std::memory_order_acquire); }
  bool is_open() const { return open_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> open_{false};
};

// Yields until `done`. Returns false after a timeout far beyond any reasonable delay.
template <class Done>
bool eventually(Done done) {
  const Instant deadline = Clock::now() + 20s;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// A task owned by its test, which can query its outcome.
struct Known final : Task {
  explicit Known(Invocation i = Invocation::blocking, std::function<void()> f = {}) : kind(i), work(std::move(f)) {}
  Invocation invocation() const override { return kind; }
  const char* name() const override { return "known"; }
  void run() override {
    if (work) work();
    runs.fetch_add(1);
  }
  void close() override { closes.fetch_add(1); }
  Invocation kind;
  std::function<void()> work;
  std::atomic<int> runs{0}, closes{0};
};

struct Failures final : FailureSink {
  void on_task_failed(const char* task, const char* why) noexcept override {
    const std::lock_guard lock(mutex);
    said.emplace_back(std::string(task) + ": " + why);
  }
  std::mutex mutex;
  std::vector<std::string> said;
};

// Produces the test's tasks; asserts that one thread at a time does. Plain data: TSan reports if the role does not
// publish it.
struct Queue final : Producer {
  TaskPtr produce() override {
    EXPECT_FALSE(inside.exchange(true)) << "two producers at once";
    ++produced;
    std::function<void()> before;
    TaskPtr task;
    {
      const std::lock_guard lock(mutex);
      if (!tasks.empty()) {
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      before = on_produce;
    }
    if (before) before();
    inside.store(false);
    return task;
  }
  void add(TaskPtr task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }
  std::mutex mutex;
  std::deque<TaskPtr> tasks;
  std::function<void()> on_produce;
  std::atomic<bool> inside{false};
  std::uint64_t produced = 0;  // guarded by the role: no lock, no atomic
};

// Keeps its tasks until the test runs them.
struct Later final : Executor {
  bool execute(TaskPtr task) override {
    if (refuse) return false;
    tasks.push(std::move(task));
    return true;
  }
  void run_all() {
    while (TaskPtr task = tasks.pop()) run_task(std::move(task), nullptr);
  }
  TaskQueue tasks;
  bool refuse = false;
};

// As many "free" threads as the test grants; the helper runs when the test says.
struct Helpers final : TryExecutor {
  bool try_execute(TaskPtr& task) override {
    if (on_try) on_try();
    if (free == 0) return false;
    --free;
    tasks.push(std::move(task));
    return true;
  }
  void run_all() {
    while (TaskPtr task = tasks.pop()) run_task(std::move(task), nullptr);
  }
  TaskQueue tasks;
  int free = 0;
  std::function<void()> on_try;
};

}  // namespace carpool::exec::testing
