// Rejection: a message that tells a borrower, on its own loop, that it gets no connection. Preallocated per waiter so
// that it can be sent when memory is exhausted; only its text may be missing then.
#pragma once

#include <cstdint>

#include "pool/destination/destination.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// Returns a Fault with this text, or without it if memory is exhausted.
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
