// LeakDetector: one loop looks for leases that are held longer than their origin's leak_timeout: each is reported once,
// with its borrower, and with leak_action = "discard" its connection ends. Costs the request path nothing: it walks the
// loop's exchanges now and then. Tunnels are meant to be long and do not count.
#pragma once

#include "exec/role.h"
#include "exec/timer.h"

namespace carpool::proxy {

class Exchange;
class ExchangePool;
class LeakLog;

class LeakDetector {
 public:
  LeakDetector(exec::Loop& loop, const ExchangePool& exchanges, LeakLog& leaks);
  void start() LOOP_ONLY;

 private:
  void tick();
  void report(Exchange& exchange) LOOP_ONLY;

  exec::Loop& loop_;
  const ExchangePool& exchanges_;
  LeakLog& leaks_;
  exec::Timer timer_;
};

}  // namespace carpool::proxy
