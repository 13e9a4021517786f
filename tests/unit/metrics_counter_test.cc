// Unit tests of sharded counters: no count is lost between loops, and a reader never sees a count decrease.
#include "metrics/counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "metrics/gauge.h"

namespace carpool::metrics {
namespace {

TEST(Counter, SumsWhatEveryLoopAdded) {
  Counter counter(3);
  counter.add(0);
  counter.add(1, 10);
  counter.add(2, 100);
  EXPECT_EQ(counter.total(), 111U);
}

TEST(Counter, LosesNothingWhileLoopsAddAtOnceAndNeverGoesBackForAReader) {
  constexpr unsigned kLoops = 4;
  constexpr std::uint64_t kEach = 20000;
  Counter counter(kLoops);
  std::vector<std::thread> loops;
  for (unsigned loop = 0; loop < kLoops; ++loop) {
    loops.emplace_back([&counter, loop] {
      for (std::uint64_t i = 0; i < kEach; ++i) counter.add(static_cast<LoopId>(loop));
    });
  }
  for (std::uint64_t before = 0; before < kLoops * kEach;) {
    const std::uint64_t now = counter.total();
    ASSERT_GE(now, before);
    before = now;
  }
  for (auto& loop : loops) loop.join();
  EXPECT_EQ(counter.total(), kLoops * kEach);
}

TEST(Counter, KeepsEachLoopOnItsOwnCacheLine) {
  struct alignas(kCacheLine) Probe {
    Cell cell;
  };
  EXPECT_EQ(sizeof(Probe), kCacheLine);
}

TEST(Gauge, CountsOverLoopsThoughOneTakesAwayWhatAnotherAdded) {
  Gauge gauge(2);
  gauge.add(0, 3);
  gauge.sub(1);
  EXPECT_EQ(gauge.total(), 2U);
}

TEST(Gauge, NeverShowsLessThanNothing) {
  Gauge gauge(1);
  gauge.sub(0);
  EXPECT_EQ(gauge.total(), 0U);
}

}  // namespace
}  // namespace carpool::metrics
