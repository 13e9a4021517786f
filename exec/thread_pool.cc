#include "exec/thread_pool.h"

#include "base/assert.h"
#include "exec/thread_pool_worker.h"

namespace carpool::exec {

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : options_(options),
      min_(options.min),
      max_(options.max),
      eviction_(options.idle_timeout, options.max_evict_count) {
  CARPOOL_ASSERT(options.max > 0 && options.min <= options.max);
}

Status ThreadPool::start() {
  {
    const Held held(mutex_);
    CARPOOL_ASSERT(phase_ == Phase::ready);
    phase_ = Phase::running;
    while (threads_ < min_ && start_worker() != nullptr) {
    }
    if (threads_ >= min_) return Done{};
  }
  stop(Duration::zero());
  {
    const Held held(mutex_);
    wait_until_alone(kNever);  // they are idle
  }
  join_all_exited();
  return Fault{FaultKind::internal, Side::self, "cannot start the first threads"};
}

void ThreadPool::resize(unsigned min, unsigned max) {
  CARPOOL_ASSERT(max > 0 && min <= max);
  Worker* called = nullptr;
  {
    const Held held(mutex_);
    min_ = min;
    max_ = max;
    called = place_job();
  }
  if (called != nullptr) called->parker.unpark();
}

bool ThreadPool::execute(TaskPtr task, TaskSource& source) {
  return try_execute(task, source);  // a rejected task is closed here, after the lock
}

bool ThreadPool::try_execute(TaskPtr& task, TaskSource& source) {
  Worker* woken = nullptr;
  {
    const Held held(mutex_);
    // If no thread is busy, none becomes free for the job later: without a thread now it would never run.
    const bool refused =
        phase_ != Phase::running || source.queued_ >= source.limit_ || (busy_ == 0 && find_thread() == nullptr);
    if (refused) {
      ++source.refused_;
      return false;
    }
    task->asked_at_ = Clock::now();
    task->source_ = &source;
    ++source.queued_;
    queue_.push(std::move(task));
    CARPOOL_ASSERT(queue_.size() <= queue_limit_);
    woken = place_job();
  }
  if (woken != nullptr) woken->parker.unpark();
  return true;
}

bool ThreadPool::execute_leased(TaskPtr& task) {
  Worker* woken = nullptr;
  {
    const Held held(mutex_);
    if (phase_ != Phase::running || leased_ >= leases_) return false;
    woken = find_thread();
    if (woken == nullptr) return false;
    task->asked_at_ = Clock::now();
    assign_job(*woken, std::move(task), true);
  }
  woken->parker.unpark();
  return true;
}

ThreadPool::Worker* ThreadPool::place_job() {
  if (queue_.empty() || busy_ >= max_ || called_ > 0) return nullptr;
  Worker* worker = find_thread();
  if (worker == nullptr) return nullptr;
  assign_job(*worker, pop_queue(), false);
  worker->called = true;
  ++called_;
  return worker;
}

ThreadPool::Worker* ThreadPool::find_thread() {
  Worker* worker = idle_.last();
  if (worker == nullptr && start_worker() != nullptr) worker = idle_.last();
  return worker;
}

void ThreadPool::assign_job(Worker& worker, TaskPtr task, bool leased) {
  no_longer_idle(worker);
  worker.job = std::move(task);
  worker.busy = true;
  worker.leased = leased;
  ++(leased ? leased_ : busy_);
}

TaskPtr ThreadPool::pop_queue() {
  TaskPtr task = queue_.pop();
  if (task != nullptr) --task->source_->queued_;
  return task;
}

ThreadPool::Lease ThreadPool::lease(unsigned places) {
  const Held held(mutex_);
  leases_ += places;
  return Lease(*this, places);
}

void ThreadPool::give_back(unsigned places) {
  const Held held(mutex_);
  leases_ -= places;
}

void ThreadPool::add_source(unsigned limit) {
  const Held held(mutex_);
  queue_limit_ += limit;
}

void ThreadPool::remove_source(unsigned limit) {
  const Held held(mutex_);
  queue_limit_ -= limit;
}

ThreadCounts ThreadPool::counts() const {
  const Held held(mutex_);
  return {.threads = threads_,
          .idle = idle_count_ - starting_,
          .busy = busy_,
          .leased = leased_,
          .starting = starting_,
          .max = max_,
          .leases = leases_,
          .queue = queue_.size(),
          .queue_limit = queue_limit_,
          .low_on_threads = busy_ + queue_.size() + options_.low_threads >= max_,
          .started = started_,
          .evicted = evicted_,
          .start_failures = start_failures_,
          .failed_jobs = failed_jobs_};
}

metrics::HistogramTotals ThreadPool::queue_wait() const {
  return queue_wait_.read();
}

TaskSource::TaskSource(ThreadPool& pool, const char* name, unsigned limit) : pool_(pool), name_(name), limit_(limit) {
  CARPOOL_ASSERT(limit > 0);
  pool_.add_source(limit_);
}

TaskSource::~TaskSource() {
  CARPOOL_ASSERT(queued() == 0);
  pool_.remove_source(limit_);
}

unsigned TaskSource::queued() const {
  const Held held(pool_.mutex_);
  return queued_;
}

std::uint64_t TaskSource::refused() const {
  const Held held(pool_.mutex_);
  return refused_;
}

}  // namespace carpool::exec
