// LeakDetector: finds the leases of one loop that are held longer than their origin's leak_timeout. Reports each once,
// with its borrower, and closes its connection if leak_action is "discard". Checks the loop's exchanges at intervals,
// so the request path has no cost. Tunnels are exempt.
#pragma once

#include "exec/role.h"
#include "exec/timer.h"

namespace carpool::proxy {

class Exchange;
class ExchangePool;
class LeakLog;
class OriginRegistry;

class LeakDetector {
 public:
  LeakDetector(exec::Loop& loop, const ExchangePool& exchanges, const OriginRegistry& origins, LeakLog& leaks);
  void start() LOOP_ONLY;

 private:
  void tick();
  void report(Exchange& exchange) LOOP_ONLY;

  exec::Loop& loop_;
  const ExchangePool& exchanges_;
  const OriginRegistry& origins_;
  LeakLog& leaks_;
  exec::Timer timer_;
};

}  // namespace carpool::proxy
