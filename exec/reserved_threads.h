// ReservedThreads: threads that wait for one task each, handed over at once or not at all, after Jetty's
// ReservedThreadExecutor.
//
// Each thread has one slot (exec/reserved_slots.h); taking the pointer out of the slot takes ownership of the thread.
// Threads come from a ThreadPool's leased places and are requested after a miss, so none exists before it is needed.
// One that cannot be started is dropped: the next miss requests again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "exec/parker.h"
#include "exec/reserved_slots.h"
#include "exec/task.h"
#include "exec/thread_pool.h"

namespace carpool::exec {

struct ReserveOptions {
  unsigned capacity = 1;                             // 0: every try is a miss
  unsigned min = 0;                                  // number of available threads that never leave for idleness
  unsigned max_pending = 0;                          // requested threads that have not started; 0: as many as capacity
  Duration idle_timeout = std::chrono::seconds(60);  // zero: threads never leave
  unsigned spins = 0;                                // how often a thread checks for a task before it sleeps
  FailureSink* failures = nullptr;
};

class ReservedThreads final : public TryExecutor {
 public:
  // Leases `capacity` places of the pool, which must outlive this.
  ReservedThreads(ThreadPool& pool, ReserveOptions options);
  ReservedThreads(const ReservedThreads&) = delete;
  ReservedThreads& operator=(const ReservedThreads&) = delete;
  ~ReservedThreads();  // stop(), then waits for tasks that were handed over

  bool try_execute(TaskPtr& task) override;
  // Every later try is a miss; waiting threads return to the pool. Running tasks finish first.
  void stop();

  unsigned capacity() const { return options_.capacity; }
  // For metrics and tests. Available threads wait in a slot; pending ones were requested and have not started.
  unsigned available() const { return slots_.waiting(); }
  unsigned pending() const { return slots_.pending(); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  class Thread;
  using Slots = ReservedSlots<Thread>;

  bool stay(Thread& thread);
  bool wait(Thread& thread, Slots::Slot& slot);
  void refill();
  void end();

  ThreadPool& pool_;
  const ReserveOptions options_;
  ThreadPool::Lease lease_;
  Slots slots_;
  std::atomic<std::uint64_t> failed_{0};

  Mutex mutex_;  // orders the end of the last thread before the destructor's return
  std::condition_variable_any ended_;
  unsigned alive_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::exec
