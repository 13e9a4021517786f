// Delivery: something on its way to another loop: a grant (embedded in its entry, one in flight each, so nothing is
// allocated) or a refusal. The house carries it and calls arrive() there; whatever became of the borrower meanwhile is
// found out on arrival, by its ticket.
#pragma once

#include "base/clock.h"

namespace carpool::pool {

class Delivery {
 public:
  // On the loop it was sent to, at top level: never from inside a call into the pool. It may be sent again, or be
  // destroyed, from inside.
  virtual void arrive(Instant now) = 0;

  Delivery* next_delivery = nullptr;  // the house's, while in the mail

 protected:
  Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery() = default;
};

}  // namespace carpool::pool
