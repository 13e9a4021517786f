// The ledger: every connection opened and every one closed, by cause. Its books are kept under the destination's mutex,
// in the same critical section that changes the entry's word between vacant and not, so that opened - closed always
// equals the entries that are not vacant. What happens per request is counted per loop instead, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pool/core/entry.h"
#include "pool/destination/snapshot.h"
#include "pool/policy/cause.h"

namespace carpool::pool {

// Guarded by the destination's mutex.
struct Ledger {
  std::array<std::uint64_t, kOpenedNames.size()> opened{};
  std::array<std::uint64_t, kClosedNames.size()> closed{};
  std::array<std::uint64_t, kFailedNames.size()> failures{};
  std::uint64_t created = 0;
  std::uint32_t peak = 0;
  std::uint64_t version = 0;  // changes with every opening and closing

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

// One loop's; written by that loop's thread alone, so an increment needs no RMW. A restore is released and a snapshot
// acquires it before it reads the borrows: it then sees the borrow that each restore it counted ended, also one of
// another loop, and borrows - restores is never negative. The other counters are relaxed: a scrape wants totals, not
// order.
struct alignas(kCacheLine) LoopCounters {
  std::atomic<std::uint64_t> borrows{0}, restores{0}, leaks{0};
  std::atomic<Duration::rep> last_now{0};  // of the last borrow
  // Sessions of this loop that take new streams, and dials that may bring one. Written under the destination's mutex,
  // by any thread; who reads an old number dials its own session a borrow later.
  std::atomic<std::uint32_t> sessions{0};

  void borrow() { add(borrows, std::memory_order_relaxed); }
  void restore() { add(restores, std::memory_order_release); }
  void leak() { add(leaks, std::memory_order_relaxed); }

 private:
  static void add(std::atomic<std::uint64_t>& counter, std::memory_order order) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, order);
  }
};

}  // namespace carpool::pool
