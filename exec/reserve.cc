#include "exec/reserve.h"

#include <new>

#include "base/assert.h"

namespace carpool::exec {

// A leased job of the pool: the thread that runs it is in reserve for as long as it runs.
class Reserve::Thread final : public Task {
 public:
  explicit Thread(Reserve& reserve) : reserve_(reserve) {}
  const char* name() const override { return "reserved"; }

  Parker parker;
  TaskPtr task;  // written by who took this thread, before it wakes it; null then: go

 private:
  void run() override {
    reserve_.pending_.fetch_sub(1, std::memory_order_relaxed);
    while (reserve_.stay(*this)) {
    }
    dispose();
  }
  void close() override { reserve_.pending_.fetch_sub(1, std::memory_order_relaxed); }
  void dispose() override {
    Reserve& reserve = reserve_;
    { const std::unique_ptr<Thread> dies(this); }
    reserve.end();
  }
  Reserve& reserve_;
};

Reserve::Reserve(ThreadPool& pool, ReserveOptions options)
    : pool_(pool),
      options_(options),
      lease_(pool.lease(options.capacity)),
      places_(std::make_unique<Place[]>(options.capacity)) {}

Reserve::~Reserve() {
  stop();
  const Held held(mutex_);
  while (alive_ > 0) ended_.wait(mutex_);
}

unsigned Reserve::available() const {
  unsigned available = 0;
  for (unsigned i = 0; i < options_.capacity; ++i) {
    available += places_[i].thread.load(std::memory_order_relaxed) != nullptr ? 1 : 0;
  }
  return available;
}

bool Reserve::try_execute(TaskPtr& task) {
  Thread* thread = take();
  if (thread == nullptr) {
    refill();
    return false;
  }
  thread->task = std::move(task);
  thread->parker.unpark();  // its release pairs with the acquire in park(): the thread sees its task
  return true;
}

// From the first place on, as offer() does: the threads of the last places are the surplus, and grow old there.
Reserve::Thread* Reserve::take() {
  for (unsigned i = 0; i < options_.capacity; ++i) {
    std::atomic<Thread*>& place = places_[i].thread;
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    // acquire pairs with offer(): the thread is what it was when it offered itself. seq_cst for stop(), see stay().
    Thread* thread = place.exchange(nullptr, std::memory_order_seq_cst);
    if (thread == nullptr) continue;
    available_.fetch_sub(1, std::memory_order_relaxed);
    return thread;
  }
  return nullptr;
}

Reserve::Place* Reserve::offer(Thread& thread) {
  for (unsigned i = 0; i < options_.capacity; ++i) {
    Thread* nobody = nullptr;
    if (places_[i].thread.compare_exchange_strong(nobody, &thread, std::memory_order_seq_cst)) return &places_[i];
  }
  return nullptr;
}

void Reserve::stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  while (Thread* thread = take()) thread->parker.unpark();
}

// Offers itself, and runs the one task it gets. False: this thread goes back to the pool.
bool Reserve::stay(Thread& thread) {
  available_.fetch_add(1, std::memory_order_relaxed);  // before the offer, so that it is never below zero
  Place* place = offer(thread);
  if (place == nullptr) {
    available_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  // The offer, then this load; stop() stores, then looks at the places. All four are seq_cst, so at least one side sees
  // the other: no thread waits in a reserve that has stopped.
  if (stopped_.load(std::memory_order_seq_cst)) {
    Thread* self = &thread;
    if (place->thread.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst)) {
      available_.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
  }
  if (!wait(thread, *place) || thread.task == nullptr) return false;
  const ThreadPool::Doing doing(thread.task->name());
  if (!run_task(std::move(thread.task), options_.failures)) failed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// False: it was idle for long, and withdrew. It may only leave by winning its own place: who loses it was taken, and
// what it was taken for is coming.
bool Reserve::wait(Thread& thread, Place& place) {
  for (;;) {
    const Instant until = deadline_after(Clock::now(), options_.idle_timeout);
    if (thread.parker.park(until, options_.looks)) return true;
    if (!may_leave()) continue;
    Thread* self = &thread;
    if (place.thread.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst)) return false;
    available_.fetch_add(1, std::memory_order_relaxed);  // the taker has counted it off
  }
}

// Counts this thread off, unless that would leave fewer than the minimum.
bool Reserve::may_leave() {
  unsigned available = available_.load(std::memory_order_relaxed);
  do {
    if (available <= options_.min) return false;
  } while (!available_.compare_exchange_weak(available, available - 1, std::memory_order_relaxed));
  return true;
}

// Asks the pool for one more thread, but never for more than there are places, nor for too many at once.
void Reserve::refill() {
  if (stopped_.load(std::memory_order_relaxed)) return;
  const unsigned most = options_.max_pending == 0 ? options_.capacity : options_.max_pending;
  unsigned pending = pending_.load(std::memory_order_relaxed);
  do {
    if (pending >= most || pending + available_.load(std::memory_order_relaxed) >= options_.capacity) return;
  } while (!pending_.compare_exchange_weak(pending, pending + 1, std::memory_order_relaxed));
  {
    const Held held(mutex_);
    ++alive_;
  }
  try {
    TaskPtr thread(std::make_unique<Thread>(*this).release());
    // Refused: it dies here, and takes its pending count and itself off again.
    static_cast<void>(pool_.execute_leased(thread));
  } catch (const std::bad_alloc&) {
    pending_.fetch_sub(1, std::memory_order_relaxed);
    end();
  }
}

void Reserve::end() {
  const Held held(mutex_);
  if (--alive_ == 0) ended_.notify_all();
}

}  // namespace carpool::exec
