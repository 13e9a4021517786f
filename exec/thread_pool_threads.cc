// The threads of a ThreadPool: start, next job, idle, leave, stop.
#include <cstdio>

#include "base/assert.h"
#include "exec/thread_pool.h"
#include "exec/thread_pool_worker.h"

namespace carpool::exec {

thread_local ThreadPool::Worker* ThreadPool::current = nullptr;

// A worker is woken after the lock is released, when its thread may have done the job and left. So a worker's record
// outlives its thread and is reused by the next one, which a spurious wake-up does not harm.
std::unique_ptr<ThreadPool::Worker> ThreadPool::unused_worker() {
  std::unique_ptr<Worker> worker;
  if (!spare_.empty()) {
    worker.reset(&spare_.pop_front());
  } else {
    try {
      worker = std::make_unique<Worker>(*this);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  worker->number = numbers_ + 1;
  worker->starting = true;
  worker->set_activity("starting", Clock::now());
  return worker;
}

// Returns a new thread, listed as idle, or null: the caller gives it its first job before it runs.
ThreadPool::Worker* ThreadPool::start_worker() {
  if (phase_ != Phase::running) return nullptr;
  std::unique_ptr<Worker> worker = unused_worker();
  if (worker == nullptr) {
    ++start_failures_;
    return nullptr;
  }
  pthread_attr_t attributes;
  CARPOOL_ASSERT(::pthread_attr_init(&attributes) == 0);
  // EINVAL: below the system's minimum; the default is used.
  if (options_.stack_size != 0) static_cast<void>(::pthread_attr_setstacksize(&attributes, options_.stack_size));
  const int error = options_.start(&worker->thread, &attributes, &ThreadPool::entry, worker.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    ++start_failures_;
    spare_.push_back(*worker.release());
    return nullptr;
  }
  const Instant now = Clock::now();
  worker->idle_since = now;
  ++numbers_, ++threads_, ++started_, ++starting_, ++idle_count_;
  eviction_.grew(now);
  all_.push_back(*worker);
  idle_.push_back(*worker);
  return worker.release();  // owned by all_ now
}

void* ThreadPool::entry(void* self) {
  Worker& me = *static_cast<Worker*>(self);
  char name[16];
  std::snprintf(name, sizeof name, "%.8s-%u", me.pool.options_.name, me.number % 100000);
  ::pthread_setname_np(::pthread_self(), name);
  current = &me;
  me.pool.work(me);
  return nullptr;
}

void ThreadPool::work(Worker& me) {
  while (next(me)) run_job(me);
}

void ThreadPool::run_job(Worker& me) {
  TaskPtr job = std::move(me.job);
  const Instant now = Clock::now();
  me.waited = now - job->asked_at_;
  me.set_activity(job->name(), now);
  me.failed = !run_task(std::move(job), options_.failures);
}

void ThreadPool::finish_job(Worker& me) {
  queue_wait_.observe(me.waited);
  if (me.failed) ++failed_jobs_;
  --(me.leased ? leased_ : busy_);
  me.busy = me.leased = me.failed = false;
  become_idle(me);
}

void ThreadPool::become_idle(Worker& worker) {
  idle_.push_back(worker);
  ++idle_count_;
}

void ThreadPool::no_longer_idle(Worker& worker) {
  static_cast<ListHook<IdleTag>&>(worker).unlink();
  --idle_count_;
  if (worker.starting) --starting_;
  worker.starting = false;
}

// Returns true if me.job is set, false if this thread has left.
bool ThreadPool::next(Worker& me) {
  {
    const Held held(mutex_);
    if (me.starting) {
      me.starting = false;
      --starting_;
    }
    if (me.busy && me.job == nullptr) finish_job(me);
    if (!me.busy && !queue_.empty() && busy_ < max_) assign_job(me, pop_queue(), false);
    if (!me.busy) {
      me.idle_since = Clock::now();
      me.set_activity("idle", me.idle_since);
    }
  }
  Exited earlier;
  for (;;) {
    Instant until = kNever;
    switch (next_step(me, until, earlier)) {
      case NextStep::job:
        return true;
      case NextStep::leave:
        join(earlier);
        return false;
      case NextStep::wait:
        me.parker.park(until);
    }
  }
}

ThreadPool::NextStep ThreadPool::next_step(Worker& me, Instant& until, Exited& earlier) {
  Worker* following = nullptr;
  {
    const Held held(mutex_);
    if (!me.busy) return idle(me, until, earlier);
    if (me.called) {
      me.called = false;
      --called_;
      following = place_job();  // a thread that was called calls the next one if jobs remain
    }
  }
  if (following != nullptr) following->parker.unpark();
  return NextStep::job;
}

ThreadPool::NextStep ThreadPool::idle(Worker& me, Instant& until, Exited& earlier) {
  const Instant now = Clock::now();
  const bool stopping = phase_ == Phase::stopping;
  if (stopping || (surplus() && eviction_.leave(now, me.idle_since))) {
    if (!stopping) ++evicted_;
    leave(me, earlier);
    return NextStep::leave;
  }
  // Only the thread idle for longest uses a timeout; the others sleep.
  if (&idle_.front() == &me && options_.idle_timeout > Duration::zero()) {
    until = surplus() ? eviction_.earliest(me.idle_since) : now + options_.idle_timeout;
  }
  return NextStep::wait;
}

bool ThreadPool::surplus() const {
  return threads_ - leased_ > min_;
}

// A leaving thread joins those that left before it, so at most one ended thread waits to be joined. It never waits for
// a later one, so there is no cycle.
void ThreadPool::leave(Worker& me, Exited& earlier) {
  no_longer_idle(me);
  --threads_;
  static_cast<ListHook<AllTag>&>(me).unlink();
  earlier.splice_back(exited_);
  exited_.push_back(me);
  if (!idle_.empty()) idle_.front().parker.unpark();  // it is now the one that uses the timeout
  left_.notify_all();
}

void ThreadPool::join(Exited& exited) {
  while (!exited.empty()) {
    Worker& worker = exited.pop_front();
    CARPOOL_ASSERT(::pthread_join(worker.thread, nullptr) == 0);
    const Held held(mutex_);
    spare_.push_back(worker);
  }
}

void ThreadPool::join_all_exited() {
  Exited exited;
  {
    const Held held(mutex_);
    exited.splice_back(exited_);
  }
  join(exited);
}

bool ThreadPool::wait_until_alone(Instant deadline) {
  const unsigned self = current != nullptr && &current->pool == this ? 1 : 0;
  while (threads_ > self) {
    if (deadline == kNever) {
      left_.wait(mutex_);
    } else if (left_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      break;
    }
  }
  return threads_ <= self;
}

bool ThreadPool::stop(Duration timeout) {
  const Instant now = Clock::now();
  TaskQueue closed;
  {
    const Held held(mutex_);
    phase_ = Phase::stopping;
    for (Worker& idle : idle_) idle.parker.unpark();
    wait_until_alone(now + timeout / 2);
    while (TaskPtr task = pop_queue()) closed.push(std::move(task));
  }
  closed.clear();  // closing a task may take other locks, and a running task may wait for it
  bool alone = false;
  {
    const Held held(mutex_);
    alone = wait_until_alone(now + timeout);
  }
  join_all_exited();
  return alone;
}

ThreadPool::~ThreadPool() {
  CARPOOL_ASSERT(current == nullptr || &current->pool != this);
  stop(Duration::zero());
  {
    const Held held(mutex_);
    wait_until_alone(kNever);
    CARPOOL_ASSERT(leases_ == 0 && queue_.empty());
  }
  join_all_exited();
  const Held held(mutex_);
  while (!spare_.empty()) {
    const std::unique_ptr<Worker> dies(&spare_.pop_front());
  }
}

std::vector<ThreadInfo> ThreadPool::dump() const {
  std::vector<ThreadInfo> all;
  const Held held(mutex_);
  all.reserve(threads_);
  for (const Worker& worker : all_) {
    using State = ThreadInfo::State;
    const State state = worker.starting ? State::starting
                        : !worker.busy  ? State::idle
                        : worker.leased ? State::leased
                                        : State::busy;
    all.push_back({worker.number, state, worker.activity.load(std::memory_order_relaxed),
                   worker.since.load(std::memory_order_relaxed)});
  }
  return all;
}

ThreadPool::ScopedActivity::ScopedActivity(const char* what) : before_(nullptr) {
  if (current == nullptr) return;
  before_ = current->activity.load(std::memory_order_relaxed);
  since_ = current->since.load(std::memory_order_relaxed);
  current->set_activity(what, Clock::now());
}

ThreadPool::ScopedActivity::~ScopedActivity() {
  if (before_ != nullptr) current->set_activity(before_, since_);
}

}  // namespace carpool::exec
