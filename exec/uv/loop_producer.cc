#include "exec/uv/loop_producer.h"

#include <exception>
#include <new>

namespace carpool::exec {

LoopProducer::LoopProducer(UvLoop& loop, std::size_t limit, FailureSink* failures)
    : loop_(loop), limit_(limit), failures_(failures) {}

bool LoopProducer::submit(TaskPtr task) {
  loop_.enter();
  if (collected_.size() >= limit_) return false;
  collected_.push(std::move(task));
  return true;
}

void LoopProducer::stop() {
  loop_.post(stop_);
}

TaskPtr LoopProducer::produce() {
  loop_.enter();  // nobody turns it: the role is this thread's
  while (collected_.empty() && !stopping_) turn();
  if (TaskPtr task = collected_.pop()) return task;
  const Held held(mutex_);
  ended_ = true;
  wakes_.notify_all();
  return nullptr;
}

void LoopProducer::wait_until_stopped() {
  const Held held(mutex_);
  while (!ended_) wakes_.wait(mutex_);
}

// A callback that throws costs its turn, never the loop. But for want of memory it may end anywhere, half of what it
// was about done, and who waits for the other half would wait for ever: then the program ends.
void LoopProducer::turn() {
  const char* why = "an exception of no kind we know";
  try {
    loop_.turn(true);
  } catch (const std::bad_alloc&) {
    std::terminate();
  } catch (const std::exception& failure) {
    if (failures_ != nullptr) failures_->on_task_failed("turn", failure.what());
  } catch (...) {
    if (failures_ != nullptr) failures_->on_task_failed("turn", why);
  }
}

}  // namespace carpool::exec
