// HandshakeTurns: bounds the TLS handshakes of one loop's clients that compute on other threads, in the order in which
// they asked. A flood of clients waits here, and leaves threads.max_tasks to the rest of the process.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "base/intrusive.h"
#include "exec/role.h"

namespace carpool::proxy {

class HandshakeTurns {
 public:
  // A waiter that is destroyed waits no more.
  class Waiter : public ListHook<struct HandshakeTurnTag> {
   public:
    virtual void on_turn() LOOP_ONLY = 0;  // it has a turn, which give_back() must end

   protected:
    ~Waiter() = default;
  };
  using Hook = ListHook<HandshakeTurnTag>;

  explicit HandshakeTurns(std::uint32_t most) : most_(most) { CARPOOL_ASSERT(most > 0); }

  // Returns true if the waiter has a turn now; otherwise on_turn() follows, unless it waits already.
  bool take(Waiter& waiter) LOOP_ONLY {
    if (waiter.Hook::linked()) return false;
    if (taken_ < most_) return ++taken_ != 0;
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
  const std::uint32_t most_;
  std::uint32_t taken_ = 0;
  List<Waiter, HandshakeTurnTag> waiting_;
};

}  // namespace carpool::proxy
