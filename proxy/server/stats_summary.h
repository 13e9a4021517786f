// StatsSummaryLog: periodically logs one line that summarises the pools, like SimplePool's getSummary, for
// installations that collect only logs.
#pragma once

#include <string>
#include <vector>

#include "exec/loop.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy {

class StatsSummaryLog {
 public:
  // Disabled if `interval` is zero.
  StatsSummaryLog(exec::Loop& loop, const admin::AdminView& view, Duration interval);
  void start() LOOP_ONLY;

 private:
  void write();
  exec::Loop& loop_;
  const admin::AdminView& view_;
  const Duration interval_;
  exec::Timer timer_;
};

// Returns a text such as "http://a active=3 idle=2 waiting=0 borrows=9 created=4 closed=1 failures=0; …" with at most
// `limit` pools, the busiest first.
std::string pool_details(std::vector<admin::PoolInfo> pools, std::size_t limit);

}  // namespace carpool::proxy
