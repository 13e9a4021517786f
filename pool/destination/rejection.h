// Rejection: a borrower's no, on its way to the borrower's loop. A no must be possible when there is no memory, so it
// is taken from a store that has one for each who waits, and its words are the first that it does without.
#pragma once

#include <cstdint>

#include "pool/destination/destination.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// A Fault with these words, or without any where there is no memory for them.
Fault make_fault(FaultKind kind, Side side, const char* words) noexcept;
Fault copy_of(const Fault& fault) noexcept;

class Rejection final : public Delivery {
 public:
  void arrive(Instant now) override;

  Destination::Impl* owner = nullptr;
  Borrower* borrower = nullptr;
  std::uint64_t ticket = 0;
  LoopId to = 0;
  Fault fault{FaultKind::internal, Side::self};
};

}  // namespace carpool::pool
