// ThreadPool: the threads that blocking work runs on, after Jetty's QueuedThreadPool.
//
// Three kinds of claims on a thread: ordinary jobs, at most `max` of them at a time, which queue when there is no room
// and are never refused while the pool runs; leased jobs (a loop, a reserved thread), each with a place of its own on
// top of `max`, which never queue; and nothing at all: an idle thread, which leaves at a bounded rate down to `min`.
//
// What decides that a thread starts and what queues the job are one step under one lock, so idle threads, queued jobs
// and started threads can never be out of step. A job is handed to one idle thread, the one that was busy last: the
// others sleep on, grow old and leave.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/intrusive.h"
#include "base/result.h"
#include "exec/eviction.h"
#include "exec/mutex.h"
#include "exec/parker.h"
#include "exec/task.h"
#include "metrics/histogram.h"

namespace carpool::exec {

struct ThreadPoolOptions {
  unsigned min = 2;  // ordinary threads that stay; started by start()
  unsigned max = 16;
  Duration idle_timeout = std::chrono::seconds(60);  // zero: nobody leaves
  unsigned max_evict_count = 1;                      // how many may leave per idle_timeout
  std::size_t stack_size = std::size_t{256} * 1024;
  unsigned low_threads = 1;  // low on threads: no more than so many are left for a new job
  const char* name = "exec";
  FailureSink* failures = nullptr;
  // As pthread_create(), so that a test can let it fail.
  int (*start)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = ::pthread_create;
};

// What one thread does, and since when. `doing` lives as long as the process.
struct ThreadInfo {
  enum class State : std::uint8_t { starting, idle, busy, leased };
  unsigned number = 0;
  State state = State::idle;
  const char* doing = "";
  Instant since;
};

// One instant's numbers: idle + busy + leased + starting = threads.
struct ThreadCounts {
  unsigned threads = 0, idle = 0, busy = 0, leased = 0, starting = 0;
  unsigned max = 0, leases = 0;
  std::size_t queue = 0, queue_limit = 0;  // the limit: the sum of what the sources may queue
  bool low_on_threads = false;
  std::uint64_t started = 0, evicted = 0, start_failures = 0, failed_jobs = 0;
};

class TaskSource;

class ThreadPool {
 public:
  explicit ThreadPool(ThreadPoolOptions options);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();  // waits for every thread, without bound: call stop() first

  // Starts `min` threads. A Fault: the machine gives no more threads; the pool is stopped.
  Status start();
  // Bounded: until half of `timeout` jobs end by themselves, queued ones included; then what is queued is closed,
  // interrupted() says so to what runs, and the other half is theirs. False: threads are left that do not end. From a
  // thread of the pool: all but itself.
  bool stop(Duration timeout);
  // A job that may take long asks whether it should give up.
  bool interrupted() const { return interrupted_.load(std::memory_order_acquire); }
  // Raising max lets queued jobs run at once; lowering it waits for busy threads to end.
  void resize(unsigned min, unsigned max);

  // Places on top of max, given back when it dies. What runs on them must have ended by then.
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
  // On a leased place: at once or never. False: no place is free or no thread can be started, or the pool is stopping;
  // `task` is still the caller's.
  bool execute_leased(TaskPtr& task);

  ThreadCounts counts() const;
  metrics::HistogramTotals queue_wait() const;
  // A copy taken under the lock, formatted by whoever asked: nothing is called while it is held.
  std::vector<ThreadInfo> dump() const;

  // While it lives, dumps say that the calling thread does this. On a thread of no pool: no effect.
  class Doing {
   public:
    explicit Doing(const char* what);
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;
    ~Doing();

   private:
    const char* before_;
    Instant since_;
  };

 private:
  friend class TaskSource;
  struct Worker;
  enum class Phase : std::uint8_t { ready, running, stopping };
  enum class Look : std::uint8_t { job, wait, leave };
  using Gone = List<Worker, struct AllTag>;

  bool execute(TaskPtr task, TaskSource& source);
  bool try_execute(TaskPtr& task, TaskSource& source);
  void add_source(unsigned limit);
  void remove_source(unsigned limit);
  void give_back(unsigned places);

  static void* entry(void* worker);
  static thread_local Worker* current;
  void work(Worker& me);
  bool next(Worker& me);
  Look look(Worker& me, Instant& until, Gone& earlier);
  Look idle(Worker& me, Instant& until, Gone& earlier) HOLDS(mutex_);
  void run_job(Worker& me);
  void leave(Worker& me, Gone& earlier) HOLDS(mutex_);
  void join(Gone& gone);
  void join_all_gone();

  Worker* find_thread() HOLDS(mutex_);  // idle, or started; null: the machine gives none
  Worker* place_job() HOLDS(mutex_);    // for the first in the queue, if there is room
  Worker* start_worker() HOLDS(mutex_);
  std::unique_ptr<Worker> unused_worker() HOLDS(mutex_);
  void become_idle(Worker& worker) HOLDS(mutex_);
  void no_longer_idle(Worker& worker) HOLDS(mutex_);
  void take_job(Worker& worker, TaskPtr task, bool leased) HOLDS(mutex_);
  void finish_job(Worker& worker) HOLDS(mutex_);
  TaskPtr pop_queue() HOLDS(mutex_);
  bool surplus() const HOLDS(mutex_);
  bool wait_until_alone(Instant deadline) HOLDS(mutex_);

  const ThreadPoolOptions options_;
  std::atomic<bool> interrupted_{false};  // release in stop() pairs with the acquire in interrupted()

  mutable Mutex mutex_;
  std::condition_variable_any left_;  // a thread has left
  Phase phase_ GUARDED_BY(mutex_) = Phase::ready;
  unsigned min_ GUARDED_BY(mutex_), max_ GUARDED_BY(mutex_);
  TaskQueue queue_ GUARDED_BY(mutex_);
  List<Worker, struct IdleTag> idle_ GUARDED_BY(mutex_);  // who was busy last stands last
  mutable List<Worker, struct AllTag> all_ GUARDED_BY(mutex_);
  Gone gone_ GUARDED_BY(mutex_);   // to be joined
  Gone spare_ GUARDED_BY(mutex_);  // joined, for the next threads
  unsigned threads_ GUARDED_BY(mutex_) = 0, busy_ GUARDED_BY(mutex_) = 0, leased_ GUARDED_BY(mutex_) = 0;
  unsigned idle_count_ GUARDED_BY(mutex_) = 0, starting_ GUARDED_BY(mutex_) = 0;  // idle ones: not yet come to life
  unsigned called_ GUARDED_BY(mutex_) = 0;  // given a job from the queue, not awake yet
  unsigned leases_ GUARDED_BY(mutex_) = 0, numbers_ GUARDED_BY(mutex_) = 0;
  std::size_t queue_limit_ GUARDED_BY(mutex_) = 0;
  Eviction eviction_ GUARDED_BY(mutex_);
  std::uint64_t started_ GUARDED_BY(mutex_) = 0, evicted_ GUARDED_BY(mutex_) = 0;
  std::uint64_t start_failures_ GUARDED_BY(mutex_) = 0, failed_jobs_ GUARDED_BY(mutex_) = 0;
  metrics::Histogram queue_wait_;  // written under mutex_, read by anybody
};

// Where tasks for the pool come from: each source may have so many in the pool's queue, so the queue is bounded by the
// sum of its sources, and the one that is over its limit is refused, never another one.
class TaskSource final : public Executor {
 public:
  TaskSource(ThreadPool& pool, const char* name, unsigned limit);
  TaskSource(const TaskSource&) = delete;
  TaskSource& operator=(const TaskSource&) = delete;
  ~TaskSource();

  bool execute(TaskPtr task) override { return pool_.execute(std::move(task), *this); }
  // As execute(), but a refused task stays the caller's.
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
  unsigned queued_ = 0;        // under the pool's lock
  std::uint64_t refused_ = 0;  // under the pool's lock
};

}  // namespace carpool::exec
