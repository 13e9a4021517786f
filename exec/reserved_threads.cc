#include "exec/reserved_threads.h"

#include <new>

#include "base/assert.h"

namespace carpool::exec {

// A leased job of the pool: its thread is in reserve while it runs.
class ReservedThreads::Thread final : public Task {
 public:
  explicit Thread(ReservedThreads& reserve) : reserve_(reserve) {}
  const char* name() const override { return "reserved"; }

  Parker parker;
  TaskPtr task;  // written before the thread is woken; null then: return to the pool

 private:
  void run() override {
    reserve_.slots_.request_ended();
    while (reserve_.stay(*this)) {
    }
    dispose();
  }
  void close() override { reserve_.slots_.request_ended(); }
  void dispose() override {
    ReservedThreads& reserve = reserve_;
    { const std::unique_ptr<Thread> dies(this); }
    reserve.end();
  }
  ReservedThreads& reserve_;
};

ReservedThreads::ReservedThreads(ThreadPool& pool, ReserveOptions options)
    : pool_(pool), options_(options), lease_(pool.lease(options.capacity)), slots_(options.capacity, options.min) {}

ReservedThreads::~ReservedThreads() {
  stop();
  const Held held(mutex_);
  while (alive_ > 0) ended_.wait(mutex_);
}

bool ReservedThreads::try_execute(TaskPtr& task) {
  Thread* thread = slots_.take();
  if (thread == nullptr) {
    refill();
    return false;
  }
  thread->task = std::move(task);
  thread->parker.unpark();  // its release pairs with the acquire in park(): the thread sees its task
  return true;
}

void ReservedThreads::stop() {
  slots_.stop([](Thread& thread) { thread.parker.unpark(); });
}

// Offers the thread and runs the one task that it receives. Returns false if the thread returns to the pool.
bool ReservedThreads::stay(Thread& thread) {
  Slots::Slot* slot = slots_.offer(thread);
  if (slot == nullptr) return false;
  if (!wait(thread, *slot) || thread.task == nullptr) return false;
  const ThreadPool::ScopedActivity activity(thread.task->name());
  if (!run_task(std::move(thread.task), options_.failures)) failed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Returns false if the thread timed out and withdrew. It may leave only by winning its own slot; if it loses, it was
// taken and its task follows.
bool ReservedThreads::wait(Thread& thread, Slots::Slot& slot) {
  for (;;) {
    const Instant until = deadline_after(Clock::now(), options_.idle_timeout);
    if (thread.parker.park(until, options_.spins)) return true;
    if (slots_.leave(slot, thread)) return false;
  }
}

// Requests one more thread from the pool, within the number of slots and the pending limit.
void ReservedThreads::refill() {
  if (slots_.stopped() || !slots_.try_request(options_.max_pending == 0 ? options_.capacity : options_.max_pending))
    return;
  {
    const Held held(mutex_);
    ++alive_;
  }
  try {
    TaskPtr thread(std::make_unique<Thread>(*this).release());
    // Rejected: the task is destroyed here and undoes its pending count.
    static_cast<void>(pool_.execute_leased(thread));
  } catch (const std::bad_alloc&) {
    slots_.request_ended();
    end();
  }
}

void ReservedThreads::end() {
  const Held held(mutex_);
  if (--alive_ == 0) ended_.notify_all();
}

}  // namespace carpool::exec
