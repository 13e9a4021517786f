#include "exec/periodic_task.h"

namespace carpool::exec {

PeriodicTask::PeriodicTask(Loop& loop, Executor& executor, Work& work, Duration pause)
    : loop_(loop),
      executor_(executor),
      work_(work),
      pause_(pause),
      timer_(Timer::bind<&PeriodicTask::on_due>(loop, *this)) {
  timer_.arm(loop.now() + pause);
}

void PeriodicTask::stop() {
  stopped_ = true;
  timer_.disarm();
}

void PeriodicTask::on_due() {
  assume_on_loop();
  timer_.arm(loop_.now() + pause_);  // in case that postpone() throws
  if (const Duration later = work_.postpone(); later > Duration::zero()) return timer_.arm(loop_.now() + later);
  timer_.disarm();
  done_ = false;
  running_ = true;
  executor_.execute(lend(*this));  // a rejected task is closed, which counts as a failed round
}

void PeriodicTask::run() {
  // Posts also while an exception leaves: without the mail no further round would begin. The owner may destroy this
  // object as soon as the mail has arrived, so nothing follows the post.
  struct PostsAtEnd {
    PeriodicTask& task;
    ~PostsAtEnd() { task.loop_.post(task); }
  };
  const PostsAtEnd home{*this};
  work_.work();
  done_ = true;
}

void PeriodicTask::arrive() {
  running_ = false;
  if (!stopped_) timer_.arm(loop_.now() + pause_);
  work_.ended(done_);
}

}  // namespace carpool::exec
