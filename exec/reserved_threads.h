// ReservedThreads: threads that wait for one task each, handed over at once or not at all, after Jetty's
// ReservedThreadExecutor.
//
// One fixed place per thread (exec/reserved_slots.h): who gets a thread's pointer out of its place owns the thread.
//
// Threads come from a ThreadPool's leased places and are asked for when one was missing, so none exists before it was
// needed. A thread that cannot be started is forgotten at once: the next miss asks again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "exec/mutex.h"
#include "exec/parker.h"
#include "exec/reserved_slots.h"
#include "exec/task.h"
#include "exec/thread_pool.h"

namespace carpool::exec {

struct ReserveOptions {
  unsigned capacity = 1;                             // 0: every try is a miss
  unsigned min = 0;                                  // so many available ones never leave for being idle
  unsigned max_pending = 0;                          // threads asked for that have not come; 0: as many as capacity
  Duration idle_timeout = std::chrono::seconds(60);  // zero: nobody leaves
  unsigned looks = 0;                                // how often a thread looks for a task before it sleeps
  FailureSink* failures = nullptr;
};

class ReservedThreads final : public TryExecutor {
 public:
  // Leases `capacity` places of the pool, which must outlive this.
  ReservedThreads(ThreadPool& pool, ReserveOptions options);
  ReservedThreads(const ReservedThreads&) = delete;
  ReservedThreads& operator=(const ReservedThreads&) = delete;
  ~ReservedThreads();  // stop(), and waits for what was handed over

  bool try_execute(TaskPtr& task) override;
  // From here on every try is a miss; threads that wait go back to the pool. Those that run a task finish it first.
  void stop();

  unsigned capacity() const { return options_.capacity; }
  // For scrapes and tests. Available ones wait in a place; pending ones were asked for and have not come.
  unsigned available() const { return places_.waiting(); }
  unsigned pending() const { return places_.pending(); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  class Thread;
  using Places = ReservedSlots<Thread>;

  bool stay(Thread& thread);
  bool wait(Thread& thread, Places::Place& place);
  void refill();
  void end();

  ThreadPool& pool_;
  const ReserveOptions options_;
  ThreadPool::Lease lease_;
  Places places_;
  std::atomic<std::uint64_t> failed_{0};

  Mutex mutex_;  // orders the end of the last thread with the end of this
  std::condition_variable_any ended_;
  unsigned alive_ GUARDED_BY(mutex_) = 0;
};

}  // namespace carpool::exec
