// Ledger: counts every connection opened and closed, by cause, under the destination's mutex and in the critical
// section that changes the entry's word between vacant and not vacant, so that opened - closed always equals the
// entries that are not vacant. Per-request events are counted per loop, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "pool/atomic.h"
#include "pool/core/entry.h"
#include "pool/destination/snapshot.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

struct Ledger {
  std::array<std::uint64_t, kOpenCauseNames.size()> opened{};
  std::array<std::uint64_t, kCloseCauseNames.size()> closed{};
  std::array<std::uint64_t, kFailureReasonNames.size()> failures{};
  std::uint64_t created = 0;
  std::uint64_t cool_downs = 0;
  std::uint64_t waited_at_size = 0;  // borrowers that waited because the size allowed no dial for them
  std::uint32_t peak = 0;
  std::optional<Instant> began;  // the time of all counts
  std::uint64_t version = 0;     // changes with every open and close

  void open(OpenCause cause, std::uint32_t in_use) {
    ++opened[static_cast<std::size_t>(cause)];
    if (in_use > peak) peak = in_use;
    ++version;
  }
  void close(CloseCause cause) {
    ++closed[static_cast<std::size_t>(cause)];
    ++version;
  }
  void fail(FailureReason reason) { ++failures[static_cast<std::size_t>(reason)]; }
};

// The counters of one loop, written by its thread only, so an increment needs no RMW. restores is stored with release
// and a snapshot loads it with acquire before it reads borrows: it sees the borrow of each counted restore, also one of
// another loop, so borrows - restores is never negative. The other counters are relaxed: only totals matter.
struct alignas(kCacheLine) LoopCounters {
  Atomic<std::uint64_t> borrows{0}, restores{0};
  std::atomic<std::uint64_t> leaks{0};
  std::atomic<Duration::rep> last_now{0};  // time of the last borrow
  // Sessions of this loop that admit new streams, and dials that may become one. Written under the destination's mutex,
  // by any thread; a reader of an old value dials its own session one borrow later.
  std::atomic<std::uint32_t> sessions{0};

  void borrow() { add(borrows, std::memory_order_relaxed); }
  void restore() { add(restores, std::memory_order_release); }
  void leak() { add(leaks, std::memory_order_relaxed); }

 private:
  template <class Counter>
  static void add(Counter& counter, std::memory_order order) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, order);
  }
};

// Returns the number of leases.
inline std::uint64_t lent_by(const LoopCounters* counters, unsigned loops) {
  std::uint64_t lent = 0;
  for (unsigned loop = 0; loop < loops; ++loop) lent -= counters[loop].restores.load(std::memory_order_acquire);
  for (unsigned loop = 0; loop < loops; ++loop) lent += counters[loop].borrows.load(std::memory_order_relaxed);
  return lent;
}

}  // namespace carpool::pool
