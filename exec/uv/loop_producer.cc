#include "exec/uv/loop_producer.h"

namespace carpool::exec {

LoopProducer::LoopProducer(UvLoop& loop, std::size_t limit, FailureSink* failures) : loop_(loop), limit_(limit) {
  loop_.report_failures_to(failures);
}

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
  loop_.enter();  // no other thread runs it: this thread holds the role
  while (collected_.empty() && !stopping_) loop_.turn(true);
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

}  // namespace carpool::exec
