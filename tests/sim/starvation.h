// The oracle of more origins than the budget has connections for: no origin starves while others are served.
#pragma once

#include <memory>
#include <vector>

#include "pool/destination/destination.h"
#include "pool/queue/connection_budget.h"
#include "tests/sim/pool_world.h"

namespace carpool::test {

class Starvation {
 public:
  // Returns true if a borrower waits at an origin that holds no connection, and each of the others has had more than
  // its share since then. Must be called after each step.
  bool check(const std::vector<pool::Destination*>& destinations,
             const std::vector<std::unique_ptr<TestBorrower>>& borrowers, Instant now) {
    std::uint64_t leases = 0;
    for (const auto& borrower : borrowers) leases += static_cast<std::uint64_t>(borrower->leases);
    since_.resize(destinations.size());
    for (std::size_t n = 0; n < destinations.size(); ++n) {
      const pool::Destination::Snapshot seen = destinations[n]->snapshot(now);
      if (seen.waiting == 0 || seen.alive() != 0) since_[n] = leases;
      if (leases - since_[n] > (destinations.size() + 1) * pool::ConnectionBudget::kMaxHandOffs) return true;
    }
    return false;
  }

 private:
  std::vector<std::uint64_t> since_;  // by origin: all leases when it last held a connection or needed none
};

}  // namespace carpool::test
