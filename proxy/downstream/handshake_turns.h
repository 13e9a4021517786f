// HandshakeTurns: limits how many TLS handshakes of one loop's clients compute on other threads, first come, first
// served. The clients of a flood wait here and leave threads.max_tasks to the rest of the process.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/intrusive.h"
#include "exec/role.h"

namespace carpool::proxy {

class HandshakeTurns {
 public:
  // Waiter: leaves the queue when it is destroyed.
  class Waiter : public ListHook<struct HandshakeTurnTag> {
   public:
    virtual void on_turn() LOOP_ONLY = 0;  // the waiter has a turn; give_back() must end it

   protected:
    ~Waiter() = default;
  };
  using Hook = ListHook<HandshakeTurnTag>;

  explicit HandshakeTurns(std::uint32_t limit) : limit_(limit) { CARPOOL_ASSERT(limit > 0); }

  // Returns true if the waiter has a turn now. Otherwise on_turn() is called later; a waiter that already waits stays
  // in its place.
  bool acquire(Waiter& waiter) LOOP_ONLY {
    if (waiter.Hook::linked()) return false;
    if (taken_ < limit_) return ++taken_ != 0;
    waiting_.push_back(waiter);
    return false;
  }
  void give_back() LOOP_ONLY {
    CARPOOL_ASSERT(taken_ > 0);
    if (waiting_.empty()) {
      --taken_;
    } else {
      waiting_.pop_front().on_turn();
    }
  }

 private:
  const std::uint32_t limit_;
  std::uint32_t taken_ = 0;
  List<Waiter, HandshakeTurnTag> waiting_;
};

}  // namespace carpool::proxy
