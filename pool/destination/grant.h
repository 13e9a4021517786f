// Grant: a connection in flight to the borrower it was granted to. An exclusive connection embeds its only grant;
// grants of a session, of which many may be in flight, come from a DeliveryPool.
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
  EntryWord word;  // the entry's when it was granted: a session may have been granted to others since
  std::uint64_t ticket = 0;
  LoopId from = 0, to = 0;
  bool moved = false;       // moved from another loop: attach on arrival
  std::uint8_t share = 0;   // the class whose share it uses
  std::uint32_t trial = 0;  // see CoolDown
};

using GrantChain = DeliveryChain<Grant>;

}  // namespace carpool::pool
