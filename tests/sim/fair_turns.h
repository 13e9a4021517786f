// FairTurns: the oracle of the wait queue's order, observed from outside: while a borrower waits, each other client of
// its class and protocols is served at most as often as its own client had requests before it, however many come later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "tests/sim/pool_world.h"

namespace carpool::test {

class FairTurns {
 public:
  // After each borrow().
  void asked(const TestBorrower& borrower, const pool::BorrowRequest& want) {
    waits_.erase(&borrower);
    if (borrower.state != TestBorrower::State::waiting || want.new_connection_only) return;
    Wait wait;
    wait.want = want;
    wait.order = borrower.order;
    wait.depth = depth_of(*borrower.destination(), want);
    // A borrower that accepts no reused connection is passed over, and tunnels have a separate limit.
    wait.usual = want.max_idle == pool::BorrowRequest{}.max_idle && !want.tunnel;
    waits_.emplace(&borrower, std::move(wait));
  }
  // After each step. Returns the complaint, or an empty string.
  std::string look() {
    std::string wrong;
    for (auto at = waits_.begin(); at != waits_.end();) {
      auto& [borrower, wait] = *at;
      const bool in = pool::WaitQueue::in(*borrower);
      if (in && wait.left) wait.usual = false;  // a grant could not be used: others were served in the meantime
      wait.left = !in;
      if (borrower->state == TestBorrower::State::waiting) {
        ++at;
        continue;
      }
      if (borrower->state == TestBorrower::State::leased && wait.usual && overtakes(*borrower, wait))
        wrong = "a borrower waits while another client has turn after turn";
      at = waits_.erase(at);
    }
    return wrong;
  }

 private:
  struct Wait {
    pool::BorrowRequest want;
    std::uint64_t order = 0;
    std::uint64_t depth = 0;                       // requests of its client that it follows
    bool usual = false, left = false;              // the queue
    std::map<std::uint64_t, std::uint64_t> ahead;  // by client: requests that came later and were served
  };
  static bool same_client(const pool::BorrowRequest& one, const pool::BorrowRequest& other) {
    return one.client == other.client && one.priority_class == other.priority_class;
  }
  std::uint64_t depth_of(const Destination& destination, const pool::BorrowRequest& want) const {
    std::uint64_t depth = 0;
    for (const auto& [borrower, wait] : waits_) {
      if (borrower->destination() == &destination && !wait.left && same_client(wait.want, want))
        depth = std::max(depth, wait.depth + 1);
    }
    return depth;
  }
  // Counts one service against all that wait for longer. Returns true if it is one too many for one of them.
  bool overtakes(const TestBorrower& served, const Wait& turn) {
    bool wrong = false;
    for (auto& [borrower, wait] : waits_) {
      if (borrower->destination() != served.destination() || wait.left || !wait.usual || wait.order >= turn.order)
        continue;
      if (wait.want.priority_class != turn.want.priority_class || wait.want.kind != turn.want.kind) continue;
      if (wait.want.client != turn.want.client && ++wait.ahead[turn.want.client] > wait.depth) wrong = true;
    }
    return wrong;
  }

  std::map<const TestBorrower*, Wait> waits_;
};

}  // namespace carpool::test
