// UntrackedConnections: finds connections that exist but are in no pool. Such a connection counts against no limit and
// never ends. It is a defect of carpool (SimplePool's leak of the second kind).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "proxy/upstream/live_connections.h"

namespace carpool::pool {
class Directory;
}

namespace carpool::proxy {

class UntrackedConnections {
 public:
  // Returns the connections that are in no entry of `directory`, were in none at the previous call, and were not
  // returned before. A connection that is about to enter its entry, or has just left it, is seen at one call at most.
  // One thread at a time.
  std::vector<LiveConnection::Info> find_untracked(const pool::Directory& directory, Instant now);
  // Returns the number found by the last find_untracked(). Any thread.
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }  // relaxed: publishes nothing

 private:
  std::vector<std::uint64_t> suspected_, found_;  // ids, sorted
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace carpool::proxy
