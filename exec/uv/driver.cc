#include "exec/uv/driver.h"

#include <utility>

namespace carpool::exec {

Driver::Driver(const DriverParts& parts)
    : host_(parts.host),
      name_(parts.name),
      pool_(parts.pool),
      tasks_(parts.tasks),
      producer_(parts.loop, parts.tasks.limit(), parts.failures),
      strategy_(parts.mode, *this, parts.executor, parts.helpers, parts.failures) {}

bool Driver::submit(TaskPtr task) {
  return tasks_.admit(*task) && producer_.submit(std::move(task));
}

bool Driver::start() {
  TaskPtr begin = lend(begin_);
  if (pool_.execute_leased(begin)) return true;
  static_cast<void>(begin.release());
  return false;
}

// The role may move to another thread between calls, so thread-local state is set on each call.
TaskPtr Driver::produce() {
  const ThreadPool::ScopedActivity activity(name_);
  host_.enter();
  TaskPtr task = producer_.produce();
  host_.leave();
  return task;
}

}  // namespace carpool::exec
