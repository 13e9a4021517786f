// Unit tests of Ledger: what a snapshot may conclude from the counters of several loops.
#include "pool/destination/ledger.h"

#include <gtest/gtest.h>

#include <thread>

namespace carpool::pool {
namespace {

// Two loops borrow and restore in turns; a reader reads restores before borrows, as a snapshot does. The plain number
// checks the same without an atomic: TSan reports it as soon as a restore no longer publishes the borrow that it ended.
TEST(LoopCounters, ARestoreThatIsSeenPublishesTheBorrowThatItEnded) {
  constexpr std::uint64_t kRounds = 20'000;
  LoopCounters lends, restores;
  std::uint64_t lent = 0;  // written by the borrowing loop, read after the other's restore
  std::atomic<std::uint64_t> handed{0};
  std::thread one([&] {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      if (i == 1) lent = 1;
      lends.borrow();
      handed.store(i, std::memory_order_release);
    }
  });
  std::thread two([&] {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      while (handed.load(std::memory_order_acquire) < i) std::this_thread::yield();
      restores.restore();
    }
  });
  for (std::uint64_t seen = 0; seen < kRounds;) {
    seen = restores.restores.load(std::memory_order_acquire);
    ASSERT_GE(lends.borrows.load(std::memory_order_relaxed), seen);
    if (seen > 0) {
      ASSERT_EQ(1U, lent);
    }
  }
  one.join();
  two.join();
}

}  // namespace
}  // namespace carpool::pool
