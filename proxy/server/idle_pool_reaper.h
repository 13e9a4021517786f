// IdlePoolReaper: destroys the pools of origins without a request for pool.total.origin_idle_timeout, so that
// max_origins limits the origins in use rather than all seen so far. Loops hold plain pointers to pools, so a pool
// removed from the directory is freed only after every loop has reported, in two separate turns, that it does not use
// the pool. At the first report the loop drops its pointers to the pool; the second proves that no turn that began
// earlier is still running. A pool that an exchange still uses waits for the next batch and delays no other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "exec/role.h"
#include "proxy/server/workers.h"

namespace carpool::pool {
class Destination;
}

namespace carpool::proxy {

class ConfigInForce;
class OriginRegistry;

class IdlePoolReaper {
 public:
  IdlePoolReaper(OriginRegistry& origins, const Workers& workers, const ConfigInForce& config)
      : origins_(origins), workers_(workers), config_(config) {}
  // Must be called periodically on the first worker's loop.
  void sweep(Instant now) LOOP_ONLY;

 private:
  void ask() LOOP_ONLY;
  void answered(const std::vector<std::vector<pool::Destination*>>& in_use) LOOP_ONLY;

  OriginRegistry& origins_;
  const Workers& workers_;
  const ConfigInForce& config_;
  std::vector<pool::Destination*> leaving_;  // sorted; not changed while a round is running
  std::vector<pool::Destination*> used_;     // left out of `leaving_`, because an exchange used them
  unsigned rounds_ = 0;                      // rounds in which no loop used any of `leaving_`
  bool asking_ = false;                      // a round is running
};

}  // namespace carpool::proxy
