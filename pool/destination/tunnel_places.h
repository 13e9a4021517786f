// TunnelPlaces: the max_tunnels places of a destination, and the borrowers that wait for one. These wait apart from the
// others, because neither a connection nor a dial serves them before they have a place. Guarded by the destination's
// mutex.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "pool/queue/wait_queue.h"

namespace carpool::pool {

class TunnelPlaces {
 public:
  std::uint32_t taken() const { return taken_; }
  // `most`: 0 is no limit. A place that is returned belongs to the first waiter.
  bool free(std::uint32_t most) const { return most == 0 || taken_ < most; }
  bool must_wait(std::uint32_t most) const { return !free(most) || !waiters.empty(); }
  void take() { ++taken_; }
  void put_back() {
    CARPOOL_ASSERT(taken_ != 0);
    --taken_;
  }

  WaitQueue waiters;

 private:
  std::uint32_t taken_ = 0;  // of leases, of waiters of the other queue, and of messages in flight
};

}  // namespace carpool::pool
