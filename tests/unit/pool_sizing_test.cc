// Unit tests of sizing: the borrow record, the advice, the simulation.
#include "pool/policy/sizing.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "pool/directory/size_advice.h"
#include "pool/directory/what_if.h"
#include "tests/unit/heap_in_use.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart(std::chrono::hours(1));

// `count` borrows, one each `gap`, each holding for `held`.
std::vector<BorrowRecord> steady(int count, Duration gap, Duration held) {
  std::vector<BorrowRecord> borrows;
  for (int i = 0; i < count; ++i) borrows.push_back({kStart + gap * i, {}, held});
  return borrows;
}

// ---- the record ----

TEST(AHistory, KeepsTheLastBorrowsAndNoMore) {
  BorrowHistory history;
  for (int i = 0; i < 5000; ++i) history.note(kStart + milliseconds(i), microseconds(7), milliseconds(i));
  std::vector<BorrowRecord> all;
  history.read(all);
  ASSERT_EQ(all.size(), BorrowHistory::kMax);
  const auto oldest = std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.arrived < b.arrived; });
  EXPECT_EQ(oldest->arrived, kStart + milliseconds(5000 - static_cast<int>(BorrowHistory::kMax)));
  EXPECT_EQ(oldest->waited, microseconds(7));
  EXPECT_EQ(oldest->held, milliseconds(5000 - static_cast<int>(BorrowHistory::kMax)));
}

TEST(AHistory, StaysSmallWhereBorrowsAreFewAndGrowsWhenTheyComeFast) {
  BorrowHistory history;
  for (int i = 0; i < 5000; ++i) history.note(kStart + seconds(i), {}, {});
  std::vector<BorrowRecord> all;
  history.read(all);
  EXPECT_EQ(all.size(), BorrowHistory::kStep) << "one a second: a step is minutes";
  for (int i = 0; i < 5000; ++i) history.note(kStart + seconds(5000) + milliseconds(10 * i), {}, {});
  all.clear();
  history.read(all);
  EXPECT_EQ(all.size(), 4 * BorrowHistory::kStep) << "a hundred a second: ten seconds of them";
}

TEST(AHistory, OfAnOriginThatIsUsedOnceTakesLittleMemory) {
  constexpr std::size_t kOrigins = 100;
  const auto histories = std::make_unique<BorrowHistory[]>(kOrigins);
  const std::int64_t before = test::heap_in_use();
  for (std::size_t n = 0; n < kOrigins; ++n) histories[n].note(kStart, {}, {});
  EXPECT_LE(test::heap_in_use() - before, static_cast<std::int64_t>(kOrigins) * 320);
}

TEST(AHistory, KnowsTheCaller) {
  BorrowHistory history;
  history.note(kStart, microseconds(1), microseconds(2), 65535);
  std::vector<BorrowRecord> all;
  history.read(all);
  EXPECT_EQ(all.at(0).caller, 65535);
  EXPECT_EQ(all.at(0).arrived, kStart);
}

TEST(AHistory, SaturatesInsteadOfWrapping) {
  BorrowHistory history;
  history.note(kStart, -seconds(1), std::chrono::hours(100));
  std::vector<BorrowRecord> all;
  history.read(all);
  EXPECT_EQ(all.at(0).waited, Duration::zero());
  EXPECT_GT(all.at(0).held, std::chrono::minutes(71));
}

TEST(AHistory, IsReadWholeWhileItIsWritten) {
  BorrowHistory history;
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    for (int i = 1; !stop; ++i) history.note(kStart + seconds(i), microseconds(i % 1000), microseconds(i % 1000));
  });
  for (int i = 0; i < 200; ++i) {
    std::vector<BorrowRecord> all;
    history.read(all);
    for (const BorrowRecord& borrow : all) {
      const auto number = std::chrono::duration_cast<seconds>(borrow.arrived - kStart).count();
      ASSERT_EQ(borrow.waited, microseconds(number % 1000));
      ASSERT_EQ(borrow.held, borrow.waited);
    }
  }
  stop = true;
}

class APast : public test::PoolScene {
 protected:
  APast() : PoolScene(1) {}
};

TEST_F(APast, HoldsTheWaitAndTheHoldTimeOfEachBorrow) {
  test::TestBorrower& first = leased();
  rest(milliseconds(10));
  test::TestBorrower& second = waiting();
  rest(milliseconds(30));
  first.release();
  world.deliver_all();
  rest(milliseconds(5));
  second.discard(CloseCause::error);
  std::vector<BorrowRecord> past = destination().history();
  ASSERT_EQ(past.size(), 2U);
  EXPECT_EQ(past[0].held, milliseconds(40));
  EXPECT_EQ(past[1].arrived, past[0].arrived + milliseconds(10));
  EXPECT_EQ(past[1].waited, milliseconds(30));
  EXPECT_EQ(past[1].held, milliseconds(5));
}

// ---- advice ----

TEST(ErlangC, MatchesPublishedTables) {
  EXPECT_NEAR(erlang_c(1, 0.5), 0.5, 1e-12) << "with one server it is the load";
  EXPECT_NEAR(erlang_c(2, 1), 1.0 / 3, 1e-12);
  EXPECT_NEAR(erlang_c(10, 8), 0.4092, 1e-4);
  EXPECT_NEAR(erlang_c(100, 80), 0.01965, 1e-4);
  EXPECT_EQ(erlang_c(5, 5), 1) << "it cannot keep up";
}

TEST(AMeasuredLoad, NeedsEnoughBorrows) {
  EXPECT_FALSE(measure_load(steady(19, milliseconds(10), milliseconds(5))));
  EXPECT_TRUE(measure_load(steady(20, milliseconds(10), milliseconds(5))));
}

TEST(AMeasuredLoad, GivesTheSizeOfErlangsFormula) {
  const auto load = measure_load(steady(1000, milliseconds(10), milliseconds(50)));
  ASSERT_TRUE(load);
  EXPECT_NEAR(load->arrival_rate, 100, 1);
  EXPECT_EQ(load->mean_hold, milliseconds(50));
  EXPECT_NEAR(load->offered_load, 5, 0.05);
  EXPECT_EQ(load->busy_median, 5U);
  EXPECT_EQ(load->busy_max, 5U);
  // The smallest c with which 99 of 100 wait no longer than a tenth of the hold time, by the formula itself.
  const auto late = [&](std::uint32_t c) {
    return erlang_c(c, load->offered_load) * std::exp(-(c - load->offered_load) * 0.005 / 0.05);
  };
  EXPECT_LE(late(erlang_size(*load)), 0.01);
  EXPECT_GT(late(erlang_size(*load) - 1), 0.01);
}

std::vector<BorrowRecord> bursts(int count, int each, Duration held) {
  std::vector<BorrowRecord> borrows;
  for (int burst = 0; burst < count; ++burst) {
    for (int i = 0; i < each; ++i) borrows.push_back({kStart + seconds(10 * burst), {}, held});
  }
  return borrows;
}

TEST(AMeasuredLoad, LeavesOutTheTimesWithoutABorrow) {
  const auto load = measure_load(bursts(50, 20, milliseconds(100)));
  EXPECT_EQ(load->busy_max, 20U);
  EXPECT_EQ(load->busy_median, 20U);
  EXPECT_EQ(load->in_use, seconds(5)) << "fifty tenths of a second";
  EXPECT_NEAR(load->offered_load, 20, 0.01);
  EXPECT_GE(erlang_size(*load), 20U);
}

TEST(AMeasuredLoad, HasTheTimesThatOneBorrowOfAHundredExceeds) {
  std::vector<BorrowRecord> borrows;
  for (int i = 1; i <= 100; ++i) borrows.push_back({kStart + seconds(i), milliseconds(2 * i), milliseconds(i)});
  const auto load = measure_load(borrows);
  EXPECT_EQ(load->p99_hold, milliseconds(99));
  EXPECT_EQ(load->p99_wait, milliseconds(198));
}

TEST(AMeasuredLoad, NeedsAsManyConnectionsAsAreBusyForAHundredthOfTheTime) {
  MeasuredLoad load;
  load.mean_hold = milliseconds(50);
  load.offered_load = 0.1;
  load.busy_p99 = 9;
  EXPECT_EQ(erlang_size(load), 9U);
}

TEST(AMeasuredLoad, CountsWaitersAndLeases) {
  std::vector<BorrowRecord> borrows;
  for (int i = 0; i < 40; ++i) {
    borrows.push_back({kStart, milliseconds(10 * (i / 4)), milliseconds(10)});  // forty at once on four connections
  }
  const auto load = measure_load(borrows);
  EXPECT_EQ(load->busy_max, 4U);
  EXPECT_EQ(load->asked_max, 40U);
}

// ---- the advice ----

Limits of_size(std::uint32_t size);

TEST(AnAdvice, IsTheSmallestSizeThatKeepsTheStatedWait) {
  const Workload load{bursts(50, 20, milliseconds(100)), {}, std::nullopt};
  const auto none = advise_size(load, of_size(4), seconds(3), milliseconds(10));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->size, 20U) << "whoever comes second waits a tenth of a second";
  EXPECT_TRUE(none->met);
  const auto some = advise_size(load, of_size(4), seconds(3), milliseconds(100));
  EXPECT_EQ(some->size, 10U) << "two rounds";
  EXPECT_EQ(some->expected.p99_wait, milliseconds(100));
  EXPECT_EQ(some->current.p99_wait, milliseconds(400)) << "five rounds on four";
}

TEST(AnAdvice, IsNotBoundByTheSizeThatWasMeasured) {
  std::vector<BorrowRecord> borrows;
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < 40; ++i) {
      borrows.push_back({kStart + seconds(10 * burst), milliseconds(20 * (i / 4)), milliseconds(20)});
    }
  }
  const auto advice = advise_size({borrows, {}, std::nullopt}, of_size(4), seconds(3), milliseconds(20));
  EXPECT_EQ(advice->load.busy_max, 4U);
  EXPECT_EQ(advice->size, 20U);
  EXPECT_EQ(advice->current.p99_wait, milliseconds(180));
}

TEST(AnAdvice, CountsNoMoreLeasesThanThereWerePlacesAlthoughTheTimesOfTheLoopsDiffer) {
  std::vector<BorrowRecord> borrows;
  for (int i = 0; i < 100; ++i) {
    const Instant late = kStart + milliseconds(20) * i - (i % 2 == 0 ? milliseconds(3) : milliseconds(0));
    for (int lease = 0; lease < 4; ++lease) borrows.push_back({late, Duration::zero(), milliseconds(20)});
  }
  Workload load{borrows, {}, std::nullopt};
  EXPECT_EQ(advise_size(load, of_size(4), seconds(3), milliseconds(20))->load.busy_max, 8U);
  load.peak = 4;
  EXPECT_EQ(advise_size(load, of_size(4), seconds(3), milliseconds(20))->load.busy_max, 4U);
  load.streams = 2;
  EXPECT_EQ(advise_size(load, of_size(4), seconds(3), milliseconds(20))->load.busy_max, 8U) << "places of sessions";
}

// Forty clients on four connections, each sending five times as fast as it is served.
std::vector<BorrowRecord> prompt_clients() {
  std::vector<BorrowRecord> borrows;
  for (int round = 0; round < 5; ++round) {
    for (int client = 0; client < 40; ++client) {
      const Duration begins = milliseconds(20) * (round * 10 + client / 4);
      const Duration asks = round == 0 ? Duration::zero() : milliseconds(20) * ((round - 1) * 10 + client / 4 + 1);
      borrows.push_back({kStart + asks, begins - asks, milliseconds(20), static_cast<std::uint16_t>(client + 1)});
    }
  }
  return borrows;
}

TEST(AnAdvice, AssumesThatClientsThatAreAnsweredEarlierAskEarlier) {
  const auto advice = advise_size({prompt_clients(), {}, std::nullopt}, of_size(4), seconds(3), milliseconds(1));
  EXPECT_EQ(advice->size, 40U);
  const SimulationResult half = simulate({prompt_clients(), {}, std::nullopt}, of_size(20), seconds(3));
  EXPECT_EQ(half.p99_wait, milliseconds(20)) << "half of them always wait for the other half";
}

TEST(AnAdvice, CountsTheStreamsOfAConnection) {
  Workload load{bursts(50, 20, milliseconds(100)), milliseconds(1), std::nullopt};
  load.streams = 4;
  EXPECT_EQ(advise_size(load, of_size(1), seconds(3), milliseconds(10))->size, 5U);
}

TEST(AnAdvice, AsksForIdleConnectionsWhereDialsTakeTooLong) {
  const Workload load{bursts(50, 4, milliseconds(10)), milliseconds(50), seconds(5)};
  const auto advice = advise_size(load, of_size(8), seconds(3), milliseconds(5));
  EXPECT_EQ(advice->size, 4U);
  EXPECT_EQ(advice->min_idle, 4U) << "the origin closes them between the bursts";
  EXPECT_TRUE(advice->met);
}

TEST(AnAdvice, SaysWhenNoSizeMeetsTheTarget) {
  const Workload load{steady(200, seconds(1), milliseconds(10)), milliseconds(50), milliseconds(10)};
  const auto advice = advise_size(load, of_size(8), seconds(3), milliseconds(5));
  EXPECT_EQ(advice->size, 1U);
  EXPECT_FALSE(advice->met) << "the origin closes what is idle at once";
  EXPECT_EQ(advice->expected.p99_wait, milliseconds(50)) << "a dial";
}

TEST(AnAdvice, ShowsHowFarItsEvidenceAgrees) {
  std::vector<BorrowRecord> borrows = bursts(10, 8, milliseconds(50));
  for (BorrowRecord& borrow : borrows) borrow.arrived += std::chrono::hours(1);
  for (const BorrowRecord& borrow : bursts(10, 16, milliseconds(50))) borrows.push_back(borrow);
  const auto advice = advise_size({borrows, {}, std::nullopt}, of_size(4), seconds(3), milliseconds(10));
  EXPECT_EQ(advice->size, 16U);
  EXPECT_EQ(advice->range_min, 8U);
  EXPECT_EQ(advice->range_max, 16U);
}

TEST(AnAdvice, KeepsAMarginBelowTheHundredthThatMayWait) {
  std::vector<BorrowRecord> borrows = steady(1000, milliseconds(10), milliseconds(5));
  for (int i = 0; i < 7; ++i) borrows.push_back({kStart + milliseconds(1000 * i), {}, milliseconds(5)});
  const auto advice = advise_size({borrows, {}, std::nullopt}, of_size(4), seconds(3), milliseconds(1));
  EXPECT_EQ(advice->size, 2U) << "with one, seven of a thousand would wait";
}

TEST(AnAdvice, LeavesNoBorrowUnserved) {
  std::vector<BorrowRecord> borrows = steady(1000, milliseconds(10), milliseconds(5));
  for (int i = 0; i < 2; ++i) borrows.push_back({kStart + seconds(20), {}, seconds(10)});
  const auto advice = advise_size({borrows, {}, std::nullopt}, of_size(4), seconds(3), milliseconds(1));
  EXPECT_EQ(advice->size, 2U) << "with one, one of a thousand would wait for ten seconds";
}

TEST(AnAdvice, NeedsEnoughBorrows) {
  EXPECT_FALSE(advise_size({steady(19, milliseconds(10), milliseconds(5)), {}, std::nullopt}, of_size(4), seconds(3),
                           std::nullopt));
}

// ---- the simulation ----

Limits of_size(std::uint32_t size) {
  Limits limits;
  limits.size = size;
  limits.idle_timeout = seconds(60);
  return limits;
}

TEST(ASimulation, OpensOneConnectionForRequestsThatNeverOverlap) {
  const Workload load{steady(100, milliseconds(100), milliseconds(10)), milliseconds(1), std::nullopt};
  const SimulationResult outcome = simulate(load, of_size(8), seconds(3));
  EXPECT_EQ(outcome.served, 100U);
  EXPECT_EQ(outcome.opened, 1U);
  EXPECT_EQ(outcome.reused, 99U);
  EXPECT_EQ(outcome.waited, 1U) << "the first one, for its dial";
  EXPECT_EQ(outcome.longest_wait, milliseconds(1));
}

TEST(ASimulation, BeginsWithEveryConnectionOfALargePool) {
  Workload load{steady(4000, microseconds(50), milliseconds(100)), milliseconds(50), std::nullopt};
  load.warm = true;
  const SimulationResult outcome = simulate(load, of_size(2000), seconds(3));
  EXPECT_EQ(outcome.waited, 0U) << "2,000 are busy at once";
  EXPECT_EQ(outcome.opened, 2000U);
}

TEST(ASimulation, ShowsTheWaitsOfASmallerPoolAndTheConnectionsOfALargerOne) {
  std::vector<BorrowRecord> borrows;
  for (int burst = 0; burst < 10; ++burst) {
    for (int i = 0; i < 8; ++i) borrows.push_back({kStart + seconds(burst), {}, milliseconds(10)});
  }
  const Workload load{borrows, {}, std::nullopt};
  const SimulationResult small = simulate(load, of_size(2), seconds(3)), large = simulate(load, of_size(8), seconds(3));
  EXPECT_EQ(small.served, 80U);
  EXPECT_EQ(small.opened, 2U);
  EXPECT_EQ(small.peak, 2U);
  EXPECT_EQ(small.longest_wait, milliseconds(30)) << "the fourth pair";
  EXPECT_EQ(large.opened, 8U);
  EXPECT_EQ(large.longest_wait, Duration::zero());
}

TEST(ASimulation, TimesOutAndRefusesAsThePoolWould) {
  Limits limits = of_size(1);
  limits.max_waiting = 2;
  const Workload load{steady(5, microseconds(1), seconds(10)), milliseconds(1), std::nullopt};
  const SimulationResult outcome = simulate(load, limits, seconds(3));
  EXPECT_EQ(outcome.served, 1U);
  EXPECT_EQ(outcome.timed_out, 2U);
  EXPECT_EQ(outcome.refused, 2U);
}

TEST(ASimulation, LetsTheOriginCloseIdleConnections) {
  const Workload load{steady(10, seconds(10), milliseconds(1)), milliseconds(1), seconds(5)};
  const SimulationResult outcome = simulate(load, of_size(4), seconds(3));
  EXPECT_EQ(outcome.opened, 10U) << "each comes five seconds too late";
  EXPECT_EQ(simulate({load.borrows, load.dial_time, std::nullopt}, of_size(4), seconds(3)).opened, 1U);
}

TEST(ASimulation, LetsTheOriginCloseIdleSessions) {
  Workload load{steady(10, seconds(10), milliseconds(1)), milliseconds(1), seconds(5)};
  load.streams = 10;
  EXPECT_EQ(simulate(load, of_size(4), seconds(3)).opened, 10U);
}

TEST(ASimulation, KeepsTheTimeThatAClientTakesBetweenTwoRequests) {
  std::vector<BorrowRecord> borrows;
  for (int round = 0; round < 20; ++round) {
    for (const int client : {0, 1}) {
      const Duration begins = microseconds(3000 * round + 1500 * client);
      borrows.push_back({kStart + begins, {}, milliseconds(1), static_cast<std::uint16_t>(client + 1)});
    }
  }
  EXPECT_EQ(simulate({borrows, {}, std::nullopt}, of_size(1), seconds(3)).waited, 0U) << "they never overlap";
}

TEST(ASimulation, ReportsTheWaitsThatOneOfAHundredExceeds) {
  std::vector<BorrowRecord> borrows = steady(97, seconds(1), milliseconds(1));
  for (int i = 0; i < 3; ++i) borrows.push_back({kStart + seconds(200), {}, milliseconds(10)});
  const SimulationResult outcome = simulate({borrows, {}, std::nullopt}, of_size(1), seconds(3));
  EXPECT_EQ(outcome.p99_wait, milliseconds(10));
  EXPECT_EQ(outcome.longest_wait, milliseconds(20));
}

TEST(ASimulation, IsTheSameEachTime) {
  std::vector<BorrowRecord> borrows;
  std::uint64_t random = 42;
  for (int i = 0; i < 2000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    borrows.push_back({kStart + microseconds(500 * i), {}, microseconds(random >> 50)});
  }
  const Workload load{borrows, milliseconds(2), seconds(1)};
  const SimulationResult one = simulate(load, of_size(6), seconds(1)), two = simulate(load, of_size(6), seconds(1));
  EXPECT_EQ(one.opened_by, two.opened_by);
  EXPECT_EQ(one.p99_wait, two.p99_wait);
  EXPECT_EQ(one.served + one.refused + one.timed_out, 2000U);
  EXPECT_LE(one.peak, 6U);
}

// CPU seconds of this thread.
double cost_of_a_replay(std::uint32_t size) {
  Limits limits;
  limits.size = limits.min_idle = size;
  const auto cpu = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double before = cpu();
  EXPECT_EQ(simulate({steady(30, milliseconds(10), milliseconds(5)), milliseconds(1), {}}, limits, seconds(1)).served,
            30U);
  return cpu() - before;
}

// Eight times as many connections that close at once cost 13 to 20 times as much, because of the caches; a linear
// search for each would make it a hundred.
TEST(ASimulation, OfTheLargestPoolCostsByItsSizeAndNotBySizeTimesSize) {
  const double small = std::max(cost_of_a_replay(8192), cost_of_a_replay(8192));
  EXPECT_LT(cost_of_a_replay(65536), 50 * small);
}

TEST(ASimulation, OfNothingIsNothing) {
  EXPECT_EQ(simulate({}, of_size(1), seconds(1)).served, 0U);
}

// Borrows of zero duration begin and end at one instant, among others.
TEST(AMeasuredLoad, CountsBorrowsThatTookNoTime) {
  std::vector<BorrowRecord> borrows = steady(200, milliseconds(1), Duration::zero());
  const std::optional<MeasuredLoad> brief = measure_load(borrows);
  ASSERT_TRUE(brief);
  EXPECT_EQ(brief->busy_max, 1U);
  for (const BorrowRecord& borrow : steady(200, milliseconds(1), milliseconds(3))) borrows.push_back(borrow);
  const std::optional<MeasuredLoad> mixed = measure_load(borrows);
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed->busy_max, 3U);
}

}  // namespace
}  // namespace carpool::pool
