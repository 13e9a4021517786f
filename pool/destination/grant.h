// Grants: connections on their way to the borrower they were given to. A connection that is lent to one at a time
// carries its only grant with it; a session may have many on their way, which come from a store that grows by need.
#pragma once

#include <cstdint>

#include "pool/core/entry.h"
#include "pool/destination/destination.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

struct Slot;

class Grant final : public Delivery {
 public:
  void arrive(Instant now) override;

  Entry<Slot>* entry = nullptr;
  Borrower* borrower = nullptr;
  std::uint64_t ticket = 0;
  LoopId from = 0, to = 0;
  bool moved = false;      // from another loop: attached on arrival
  std::uint8_t share = 0;  // the class whose share it takes
};

using GrantChain = DeliveryChain<Grant>;

}  // namespace carpool::pool
