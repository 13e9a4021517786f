// Parker: one thread sleeps here until another one wakes it. A wake-up that comes first is kept, so none is lost.
//
// It looks for a moment before it sleeps: on a busy machine the next wake-up is often closer than a sleep is long.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace carpool::exec {

class Parker {
 public:
  // Its own thread only. True: woken; false: `deadline` is here and no wake-up was. `looks`: how often before sleeping.
  bool park(Instant deadline = kNever, unsigned looks = 0);
  // Any thread. What it wrote before is seen by the thread that it wakes.
  void unpark();

 private:
  enum State : std::uint32_t { empty, asleep, woken };
  bool consume();
  void fall_asleep(Instant deadline);
  std::atomic<std::uint32_t> state_{empty};
};

}  // namespace carpool::exec
