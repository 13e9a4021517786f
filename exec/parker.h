// Parker: blocks one thread until another wakes it. An earlier wake-up is kept, so none is lost.
//
// It spins briefly before it sleeps: under load the next wake-up often comes sooner than a sleep takes.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "exec/atomic.h"

namespace carpool::exec {

class Parker {
 public:
  // Own thread only. Returns true if woken, false at `deadline` without a wake-up. `spins`: checks before sleeping.
  bool park(Instant deadline = kNever, unsigned spins = 0);
  // Any thread. Writes before it are visible to the woken thread.
  void unpark();

 private:
  enum State : std::uint32_t { empty, asleep, woken };
  bool consume();
  void wait_on_futex(Instant deadline);
  Atomic<std::uint32_t> state_{empty};
};

}  // namespace carpool::exec
