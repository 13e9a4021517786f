#include "exec/reserved_threads.h"

#include <new>

#include "base/assert.h"

namespace carpool::exec {

// A leased job of the pool: the thread that runs it is in reserve for as long as it runs.
class ReservedThreads::Thread final : public Task {
 public:
  explicit Thread(ReservedThreads& reserve) : reserve_(reserve) {}
  const char* name() const override { return "reserved"; }

  Parker parker;
  TaskPtr task;  // written by who took this thread, before it wakes it; null then: go

 private:
  void run() override {
    reserve_.places_.came();
    while (reserve_.stay(*this)) {
    }
    dispose();
  }
  void close() override { reserve_.places_.came(); }
  void dispose() override {
    ReservedThreads& reserve = reserve_;
    { const std::unique_ptr<Thread> dies(this); }
    reserve.end();
  }
  ReservedThreads& reserve_;
};

ReservedThreads::ReservedThreads(ThreadPool& pool, ReserveOptions options)
    : pool_(pool), options_(options), lease_(pool.lease(options.capacity)), places_(options.capacity, options.min) {}

ReservedThreads::~ReservedThreads() {
  stop();
  const Held held(mutex_);
  while (alive_ > 0) ended_.wait(mutex_);
}

bool ReservedThreads::try_execute(TaskPtr& task) {
  Thread* thread = places_.take();
  if (thread == nullptr) {
    refill();
    return false;
  }
  thread->task = std::move(task);
  thread->parker.unpark();  // its release pairs with the acquire in park(): the thread sees its task
  return true;
}

void ReservedThreads::stop() {
  places_.stop([](Thread& thread) { thread.parker.unpark(); });
}

// Offers itself, and runs the one task it gets. False: this thread goes back to the pool.
bool ReservedThreads::stay(Thread& thread) {
  Places::Place* place = places_.offer(thread);
  if (place == nullptr) return false;
  if (!wait(thread, *place) || thread.task == nullptr) return false;
  const ThreadPool::Doing doing(thread.task->name());
  if (!run_task(std::move(thread.task), options_.failures)) failed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// False: it was idle for long, and withdrew. It may only leave by winning its own place: who loses it was taken, and
// what it was taken for is coming.
bool ReservedThreads::wait(Thread& thread, Places::Place& place) {
  for (;;) {
    const Instant until = deadline_after(Clock::now(), options_.idle_timeout);
    if (thread.parker.park(until, options_.looks)) return true;
    if (places_.leave(place, thread)) return false;
  }
}

// Asks the pool for one more thread, but never for more than there are places, nor for too many at once.
void ReservedThreads::refill() {
  if (places_.stopped() || !places_.ask(options_.max_pending == 0 ? options_.capacity : options_.max_pending)) return;
  {
    const Held held(mutex_);
    ++alive_;
  }
  try {
    TaskPtr thread(std::make_unique<Thread>(*this).release());
    // Refused: it dies here, and takes its pending count and itself off again.
    static_cast<void>(pool_.execute_leased(thread));
  } catch (const std::bad_alloc&) {
    places_.came();
    end();
  }
}

void ReservedThreads::end() {
  const Held held(mutex_);
  if (--alive_ == 0) ended_.notify_all();
}

}  // namespace carpool::exec
