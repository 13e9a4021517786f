// DeliveryInbox: the messages from the pool to one loop: grants and rejections for its borrowers, and wake-up times of
// destinations.
#pragma once

#include <utility>
#include <vector>

#include "exec/loop.h"
#include "exec/timer.h"
#include "pool/queue/delivery_queue.h"

namespace carpool::pool {
class Destination;
}

namespace carpool::proxy {

class DeliveryInbox final : private exec::Mail {
 public:
  explicit DeliveryInbox(exec::Loop& loop);

  void deliver(pool::Delivery& delivery);  // any thread
  void wake_at(pool::Destination& destination, Instant when) LOOP_ONLY;
  // Must be called before the destinations `leaving`, sorted by address, are destroyed.
  void forget(const std::vector<pool::Destination*>& leaving) LOOP_ONLY;

 private:
  void arrive() override LOOP_ONLY;
  void wake_due();

  exec::Loop& loop_;
  pool::DeliveryQueue deliveries_;
  using WakeUp = std::pair<Instant, pool::Destination*>;
  std::vector<WakeUp> to_wake_ LOOP_LOCAL;  // a heap, the earliest first
  exec::Timer timer_;
};

}  // namespace carpool::proxy
