// ThreadPool: the threads for blocking work, after Jetty's QueuedThreadPool.
//
// Ordinary jobs run on at most `max` threads and queue beyond that; they are not rejected while the pool runs. Leased
// jobs (a loop, a reserved thread) have places of their own above `max` and never queue. Idle threads leave at a
// bounded rate down to `min`.
//
// Starting a thread and queueing the job are one step under one lock, so idle threads, queued jobs and started threads
// are always consistent. A job goes to the idle thread that was busy last: the others sleep, time out and leave.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/intrusive.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exec/eviction.h"
#include "exec/parker.h"
#include "exec/task.h"
#include "metrics/histogram.h"

namespace carpool::exec {

struct ThreadPoolOptions {
  unsigned min = 2;  // ordinary threads that stay; started by start()
  unsigned max = 16;
  Duration idle_timeout = std::chrono::seconds(60);  // zero: threads never leave
  unsigned max_evict_count = 1;                      // how many may leave per idle_timeout
  std::size_t stack_size = std::size_t{256} * 1024;
  unsigned low_threads = 1;  // low on threads: at most this many are left for new jobs
  const char* name = "exec";
  FailureSink* failures = nullptr;
  // As pthread_create(); a test can make it fail.
  int (*start)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = ::pthread_create;
};

// The activity of one thread and its start. `activity` lives as long as the process.
struct ThreadInfo {
  enum class State : std::uint8_t { starting, idle, busy, leased };
  unsigned number = 0;
  State state = State::idle;
  const char* activity = "";
  Instant since;
};

// Numbers of one instant: idle + busy + leased + starting = threads.
struct ThreadCounts {
  unsigned threads = 0, idle = 0, busy = 0, leased = 0, starting = 0;
  unsigned max = 0, leases = 0;
  std::size_t queue = 0, queue_limit = 0;  // the limit: the sum of the sources' limits
  bool low_on_threads = false;
  std::uint64_t started = 0, evicted = 0, start_failures = 0, failed_jobs = 0;
};

class TaskSource;

class ThreadPool {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();  // waits for every thread, without a bound: call stop() first

  // Starts `min` threads. On a Fault no thread could be started; the pool is stopped.
  Status start();
  // Waits up to half of `timeout` for all jobs, queued ones included; then closes queued jobs and waits for
  // the other half. Returns false if threads remain. Called on a thread of the pool: all except itself.
  bool stop(Duration timeout);
  // A higher max runs queued jobs at once; a lower one waits for busy threads to finish.
  void resize(unsigned min, unsigned max);

  // Places above max, returned by the destructor. Jobs on them must have ended by then.
  class [[nodiscard]] Lease {
   public:
    Lease(Lease&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), places_(other.places_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(places_);
    }

   private:
    friend class ThreadPool;
    Lease(ThreadPool& pool, unsigned places) : pool_(&pool), places_(places) {}
    ThreadPool* pool_;
    unsigned places_;
  };
  Lease lease(unsigned places);
  // Runs the task on a leased place at once. Returns false if no place is free, no thread can be started or the pool is
  // stopping; `task` is still the caller's.
  bool execute_leased(TaskPtr& task);

  ThreadCounts counts() const;
  metrics::HistogramTotals queue_wait() const;
  // Returns a copy taken under the lock; the caller formats it.
  std::vector<ThreadInfo> dump() const;

  // While it exists, dumps show `what` for the calling thread. No effect on a thread of no pool.
  class ScopedActivity {
   public:
    explicit ScopedActivity(const char* what);
    ScopedActivity(const ScopedActivity&) = delete;
    ScopedActivity& operator=(const ScopedActivity&) = delete;
    ~ScopedActivity();

   private:
    const char* before_;
    Instant since_;
  };

 private:
  friend class TaskSource;
  struct Worker;
  enum class Phase : std::uint8_t { ready, running, stopping };
  enum class NextStep : std::uint8_t { job, wait, leave };
  using Exited = List<Worker, struct AllTag>;

  bool execute(TaskPtr task, TaskSource& source);
  bool try_execute(TaskPtr& task, TaskSource& source);
  void add_source(unsigned limit);
  void remove_source(unsigned limit);
  void give_back(unsigned places);

  static void* entry(void* worker);
  static thread_local Worker* current;
  void work(Worker& me);
  bool next(Worker& me);
  NextStep next_step(Worker& me, Instant& until, Exited& earlier);
  NextStep idle(Worker& me, Instant& until, Exited& earlier) REQUIRES(mutex_);
  void run_job(Worker& me);
  void leave(Worker& me, Exited& earlier) REQUIRES(mutex_);
  void join(Exited& exited);
  void join_all_exited();

  Worker* find_thread() REQUIRES(mutex_);  // idle or started; null: no thread can be started
  Worker* place_job() REQUIRES(mutex_);    // for the head of the queue, if there is capacity
  Worker* start_worker() REQUIRES(mutex_);
  std::unique_ptr<Worker> unused_worker() REQUIRES(mutex_);
  void become_idle(Worker& worker) REQUIRES(mutex_);
  void no_longer_idle(Worker& worker) REQUIRES(mutex_);
  void assign_job(Worker& worker, TaskPtr task, bool leased) REQUIRES(mutex_);
  void finish_job(Worker& worker) REQUIRES(mutex_);
  TaskPtr pop_queue() REQUIRES(mutex_);
  bool surplus() const REQUIRES(mutex_);
  bool wait_until_alone(Instant deadline) REQUIRES(mutex_);

  const ThreadPoolOptions options_;

  mutable Mutex mutex_;
  std::condition_variable_any left_;  // signalled when a thread leaves
  Phase phase_ GUARDED_BY(mutex_) = Phase::ready;
  unsigned min_ GUARDED_BY(mutex_), max_ GUARDED_BY(mutex_);
  TaskQueue queue_ GUARDED_BY(mutex_);
  List<Worker, struct IdleTag> idle_ GUARDED_BY(mutex_);  // the last one was busy most recently
  mutable List<Worker, struct AllTag> all_ GUARDED_BY(mutex_);
  Exited exited_ GUARDED_BY(mutex_);  // to be joined
  Exited spare_ GUARDED_BY(mutex_);   // joined, for reuse
  unsigned threads_ GUARDED_BY(mutex_) = 0, busy_ GUARDED_BY(mutex_) = 0, leased_ GUARDED_BY(mutex_) = 0;
  unsigned idle_count_ GUARDED_BY(mutex_) = 0, starting_ GUARDED_BY(mutex_) = 0;  // of the idle ones: not running yet
  unsigned called_ GUARDED_BY(mutex_) = 0;                                        // given a queued job, not awake yet
  unsigned leases_ GUARDED_BY(mutex_) = 0, numbers_ GUARDED_BY(mutex_) = 0;
  std::size_t queue_limit_ GUARDED_BY(mutex_) = 0;
  Eviction eviction_ GUARDED_BY(mutex_);
  std::uint64_t started_ GUARDED_BY(mutex_) = 0, evicted_ GUARDED_BY(mutex_) = 0;
  std::uint64_t start_failures_ GUARDED_BY(mutex_) = 0, failed_jobs_ GUARDED_BY(mutex_) = 0;
  metrics::Histogram queue_wait_;  // written under mutex_, read by any thread
};

// A source of tasks for the pool. Each source has its own queue limit, so the queue is bounded by their sum, and only a
// source above its limit is rejected.
class TaskSource final : public Executor {
 public:
  TaskSource(ThreadPool& pool, const char* name, unsigned limit);
  TaskSource(const TaskSource&) = delete;
  TaskSource& operator=(const TaskSource&) = delete;
  ~TaskSource();

  bool execute(TaskPtr task) override { return pool_.execute(std::move(task), *this); }
  // As execute(), but a rejected task remains the caller's.
  bool try_execute(TaskPtr& task) { return pool_.try_execute(task, *this); }

  const char* name() const { return name_; }
  unsigned limit() const { return limit_; }
  unsigned queued() const;
  std::uint64_t refused() const;

 private:
  friend class ThreadPool;
  ThreadPool& pool_;
  const char* const name_;
  const unsigned limit_;
  unsigned queued_ = 0;        // guarded by the pool's lock
  std::uint64_t refused_ = 0;  // guarded by the pool's lock
};

}  // namespace carpool::exec
