// Submitter: accepts tasks that may block from the code of a loop.
#pragma once

#include "exec/role.h"
#include "exec/task.h"

namespace carpool::exec {

class Submitter {
 public:
  // Called from the loop's callbacks: `task` runs after this turn, on this thread or another. Returns false if too many
  // tasks exist; the task was closed.
  virtual bool submit(TaskPtr task) LOOP_ONLY = 0;

 protected:
  ~Submitter() = default;
};

}  // namespace carpool::exec
