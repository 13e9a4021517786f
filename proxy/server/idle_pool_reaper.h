// IdlePoolReaper: ends the pools of origins that nobody asked for during pool.total.origin_idle_timeout, so that
// max_origins bounds those in use and not all that ever were. Loops keep plain pointers to what they use; so one that
// was taken out of the directory stays in memory until every loop has said, in two turns that lie apart, that it knows
// it no longer: the first makes it forget, the second shows that no turn is left which began before that.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "exec/role.h"
#include "proxy/server/worker.h"

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
  // Now and then, on the first worker's loop.
  void sweep(Instant now) LOOP_ONLY;

 private:
  void ask() LOOP_ONLY;
  void answered(bool knows) LOOP_ONLY;

  OriginRegistry& origins_;
  const Workers& workers_;
  const ConfigInForce& config_;
  std::vector<pool::Destination*> leaving_;  // not changed while loops are asked
  unsigned rounds_ = 0;                      // in which no loop knew any of them
  std::size_t asked_ = 0;                    // loops that did not answer yet
  bool known_ = false;                       // one of this round's answers
};

}  // namespace carpool::proxy
