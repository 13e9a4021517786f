// TaskLimit: limits the number of existing tasks: collected on a loop, queued or running. An admitted task counts until
// it has run or was closed; run_task() and RejectTask subtract it.
#pragma once

#include <atomic>
#include <cstdint>

#include "exec/task.h"

namespace carpool::exec {

class TaskLimit {
 public:
  explicit TaskLimit(unsigned limit) : limit_(limit) {}
  TaskLimit(const TaskLimit&) = delete;
  TaskLimit& operator=(const TaskLimit&) = delete;

  // Any thread. Returns false at the limit; the task is not counted and remains the caller's.
  bool admit(Task& task) {
    unsigned existing = existing_.load(std::memory_order_relaxed);
    do {
      if (existing >= limit_) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
      // relaxed: a count that publishes nothing
    } while (!existing_.compare_exchange_weak(existing, existing + 1, std::memory_order_relaxed));
    task.limit_ = this;
    return true;
  }

  unsigned limit() const { return limit_; }
  unsigned existing() const { return existing_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  friend class Task;
  void leave() { existing_.fetch_sub(1, std::memory_order_relaxed); }

  const unsigned limit_;
  std::atomic<unsigned> existing_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace carpool::exec
