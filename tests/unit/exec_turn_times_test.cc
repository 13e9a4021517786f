// Unit tests of TurnTimes, alone and in a real loop.
#include "exec/turn_times.h"

#include <numeric>

#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

using namespace testing;

std::uint64_t from(Duration least, const metrics::HistogramTotals& totals) {
  const std::size_t first = metrics::bucket_of(static_cast<std::uint64_t>(least.count()));
  return std::accumulate(totals.buckets.begin() + static_cast<std::ptrdiff_t>(first), totals.buckets.end(), 0ULL);
}

void work_until(Instant end) {
  while (Clock::now() < end) {
  }
}

TEST(TurnTimes, CountsATurnFromTheEndOfAWaitToTheNextWait) {
  TurnTimes times;
  const Instant start{1s};
  times.end(start);
  EXPECT_EQ(0U, times.turns().count()) << "no turn has begun";
  times.begin(start, kNever);
  times.end(start + 3ms);
  times.begin(start + 9ms, kNever);
  times.end(start + 10ms);
  EXPECT_EQ(2U, times.turns().count());
  EXPECT_EQ(4'000'000U, times.turns().nanoseconds) << "the wait is no part of a turn";
}

TEST(TurnTimes, CountsTheDelayOfADueTimerOnly) {
  TurnTimes times;
  const Instant start{1s};
  times.begin(start, start + 1ms);
  times.begin(start, kNever);
  EXPECT_EQ(0U, times.delays().count());
  times.begin(start + 5ms, start + 1ms);
  EXPECT_EQ(1U, times.delays().count());
  EXPECT_EQ(4'000'000U, times.delays().nanoseconds);
}

TEST(TurnTimes, OfALoopShowALongCallbackAndTheTimerThatWaitedForIt) {
  assume_on_loop();
  auto loop = make_loop();
  Pair pair;
  bool timer_ran = false;
  OnTime ran(*loop, [&] { timer_ran = true; });
  OnReady watcher([&](Ready ready) {
    assume_on_loop();
    if (!ready.readable || ran.timer.armed()) return;
    loop->arm(ran.timer, Clock::now());  // due while this callback runs
    work_until(Clock::now() + 12ms);
  });
  const auto key = loop->watch(pair.near.get(), watcher);
  ASSERT_TRUE(key);
  pair.say("x");
  while (!timer_ran) loop->turn(true);
  loop->turn(false);
  EXPECT_GE(from(10ms, loop->turn_times().turns()), 1U);
  EXPECT_GE(from(10ms, loop->turn_times().delays()), 1U);
  loop->unwatch(pair.near.get(), *key);
}

}  // namespace
}  // namespace carpool::exec
