// One thread of a ThreadPool, as the pool sees it. Internal.
#pragma once

#include "exec/thread_pool.h"

namespace carpool::exec {

struct ThreadPool::Worker final : ListHook<IdleTag>, ListHook<AllTag> {
  explicit Worker(ThreadPool& owner) : pool(owner) {}

  void say(const char* what, Instant now) {
    // relaxed: a dump may see a new word with an old time, nothing else hangs on them
    doing.store(what, std::memory_order_relaxed);
    since.store(now, std::memory_order_relaxed);
  }

  ThreadPool& pool;
  unsigned number = 0;
  pthread_t thread{};
  Parker parker;

  // Under the pool's lock; `job` is the worker's own once it is woken.
  TaskPtr job;
  bool busy = false;     // it has a job: ordinary or leased
  bool leased = false;   // the job is on a leased place
  bool called = false;   // for a job from the queue, and not awake yet
  bool starting = true;  // it has not come to life, and has no job
  bool failed = false;   // its last job threw
  Duration waited{};     // its last job, for a thread
  Instant idle_since;

  std::atomic<const char*> doing{"starting"};
  std::atomic<Instant> since{Instant{}};
};

}  // namespace carpool::exec
