// Submitter: takes tasks that may block from the code of a loop.
#pragma once

#include "exec/role.h"
#include "exec/task.h"

namespace carpool::exec {

class Submitter {
 public:
  // From the loop's callbacks: `task` runs when this turn is over, on this thread or another one. Returns false if too
  // many tasks exist; the task was closed.
  virtual bool submit(TaskPtr task) LOOP_ONLY = 0;

 protected:
  ~Submitter() = default;
};

}  // namespace carpool::exec
