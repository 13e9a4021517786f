// PendingPlaces: counts the places of a destination whose connection is under inspection or being disposed of. Each may
// serve a waiter soon, so no dial starts for that waiter. Both counts change without the mutex, so they are not part of
// Supply.
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "pool/atomic.h"

namespace carpool::pool {

class PendingPlaces final {
 public:
  // Called before the connection is taken for the inspection: a search that misses it for that reason sees the count.
  void inspection_begun() { begun_.fetch_add(1, std::memory_order_seq_cst); }
  // Called after the connection is idle again or closed, or could not be taken. The caller then serves the waiters.
  void inspection_ended() {
    CARPOOL_ASSERT(ended_.fetch_add(1, std::memory_order_seq_cst) != begun_.load(std::memory_order_seq_cst));
  }
  std::uint32_t inspections_ended() const { return ended_.load(std::memory_order_seq_cst); }
  // Returns the number of inspections that were in progress at any time since inspections_ended() returned `ended`. A
  // search in between may have missed each of them; an inspection that ended meanwhile serves the waiters afterwards.
  std::uint32_t inspecting_since(std::uint32_t ended) const { return begun_.load(std::memory_order_seq_cst) - ended; }
  std::uint32_t inspecting() const { return inspecting_since(inspections_ended()); }

  // A health check holds an idle connection, which is idle again soon: no dial replaces it for min_idle.
  void probe_begun() { probes_begun_.fetch_add(1, std::memory_order_relaxed); }  // before the connection is taken
  void probe_ended() { probes_ended_.fetch_add(1, std::memory_order_relaxed); }  // after it is idle again, or unfit
  std::uint32_t probes_ended() const { return probes_ended_.load(std::memory_order_relaxed); }
  // Returns the number of probes that were in progress at any time since probes_ended() returned `ended`.
  std::uint32_t probing_since(std::uint32_t ended) const {
    return probes_begun_.load(std::memory_order_relaxed) - ended;
  }

  // Called under the destination's mutex, which orders it for the code that plans dials.
  void disposal_begun() { disposals_.fetch_add(1, std::memory_order_relaxed); }
  // Called after the place is free. The caller then serves the waiters.
  void disposal_ended() { CARPOOL_ASSERT(disposals_.fetch_sub(1, std::memory_order_seq_cst) != 0); }
  std::uint32_t disposing() const { return disposals_.load(std::memory_order_seq_cst); }

 private:
  Atomic<std::uint32_t> begun_{0}, ended_{0};  // inspections, modulo 2^32; one that is about to begin counts as begun
  Atomic<std::uint32_t> disposals_{0};
  // Relaxed: a count that is wrong for a moment delays a dial until the next sweep, or closes one connection too many.
  Atomic<std::uint32_t> probes_begun_{0}, probes_ended_{0};
};

}  // namespace carpool::pool
