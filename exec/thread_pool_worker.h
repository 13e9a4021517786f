// ThreadPool::Worker: one thread of a ThreadPool. Internal.
#pragma once

#include "exec/thread_pool.h"

namespace carpool::exec {

struct ThreadPool::Worker final : ListHook<IdleTag>, ListHook<AllTag> {
  explicit Worker(ThreadPool& owner) : pool(owner) {}

  void set_activity(const char* what, Instant now) {
    // relaxed: a dump may see a new text with an old time; nothing else depends on them
    activity.store(what, std::memory_order_relaxed);
    since.store(now, std::memory_order_relaxed);
  }

  ThreadPool& pool;
  unsigned number = 0;
  pthread_t thread{};
  Parker parker;

  // Guarded by the pool's lock; `job` belongs to the worker once it is woken.
  TaskPtr job;
  bool busy = false;     // has a job: ordinary or leased
  bool leased = false;   // the job is on a leased place
  bool called = false;   // for a queued job, and not awake yet
  bool starting = true;  // not running yet and without a job
  bool failed = false;   // its last job threw
  Duration waited{};     // by its last job, for a thread
  Instant idle_since;

  std::atomic<const char*> activity{"starting"};
  std::atomic<Instant> since{Instant{}};
};

}  // namespace carpool::exec
