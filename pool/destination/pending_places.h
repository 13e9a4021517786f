// PendingPlaces: counts the places of a destination whose connection is under inspection or being disposed of. Each may
// serve a waiter soon, so no dial starts for that waiter. Both counts change without the mutex, so they are not part of
// Supply.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "pool/core/atomic.h"

namespace carpool::pool {

class PendingPlaces final {
 public:
  // Called before the connection is taken for the inspection: a search that misses it for that reason sees the count.
  void inspection_begun() { inspections_.fetch_add(1, std::memory_order_seq_cst); }
  // Called after the connection is idle again or closed, or could not be taken. The caller then serves the waiters.
  void inspection_ended() { CARPOOL_ASSERT(inspections_.fetch_sub(1, std::memory_order_seq_cst) != 0); }
  std::uint32_t inspecting() const { return inspections_.load(std::memory_order_seq_cst); }

  // Called under the destination's mutex, which orders it for the code that plans dials.
  void disposal_begun() { disposals_.fetch_add(1, std::memory_order_relaxed); }
  // Called after the place is free. The caller then serves the waiters.
  void disposal_ended() { CARPOOL_ASSERT(disposals_.fetch_sub(1, std::memory_order_seq_cst) != 0); }
  std::uint32_t disposing() const { return disposals_.load(std::memory_order_seq_cst); }

 private:
  Atomic<std::uint32_t> inspections_{0};  // in progress or about to begin
  Atomic<std::uint32_t> disposals_{0};
};

}  // namespace carpool::pool
