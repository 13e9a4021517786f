// Unit tests of sizing: the borrow record, the advice, the simulation, the explanation.
#include "pool/policy/sizing.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "pool/directory/explain.h"
#include "pool/directory/what_if.h"
#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart(std::chrono::hours(1));

// `count` borrows, one each `gap`, each holding for `held`.
std::vector<BorrowRecord> steady(int count, Duration gap, Duration held) {
  std::vector<BorrowRecord> stays;
  for (int i = 0; i < count; ++i) stays.push_back({kStart + gap * i, {}, held});
  return stays;
}

// ---- the record ----

TEST(AHistory, KeepsTheLastBorrowsAndNoMore) {
  BorrowHistory history;
  for (int i = 0; i < 5000; ++i) history.note(kStart + milliseconds(i), microseconds(7), milliseconds(i));
  std::vector<BorrowRecord> all;
  history.read(all);
  ASSERT_EQ(all.size(), BorrowHistory::kMost);
  const auto oldest = std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.arrived < b.arrived; });
  EXPECT_EQ(oldest->arrived, kStart + milliseconds(5000 - static_cast<int>(BorrowHistory::kMost)));
  EXPECT_EQ(oldest->waited, microseconds(7));
  EXPECT_EQ(oldest->held, milliseconds(5000 - static_cast<int>(BorrowHistory::kMost)));
}

TEST(AHistory, StaysSmallWhereBorrowsAreFewAndGrowsWhenTheyComeFast) {
  BorrowHistory history;
  for (int i = 0; i < 5000; ++i) history.note(kStart + seconds(i), {}, {});
  std::vector<BorrowRecord> all;
  history.read(all);
  EXPECT_EQ(all.size(), BorrowHistory::kChunk) << "one a second: a chunk is minutes";
  for (int i = 0; i < 5000; ++i) history.note(kStart + seconds(5000) + milliseconds(10 * i), {}, {});
  all.clear();
  history.read(all);
  EXPECT_EQ(all.size(), 4 * BorrowHistory::kChunk) << "a hundred a second: ten seconds of them";
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
    for (const BorrowRecord& stay : all) {
      const auto number = std::chrono::duration_cast<seconds>(stay.arrived - kStart).count();
      ASSERT_EQ(stay.waited, microseconds(number % 1000));
      ASSERT_EQ(stay.held, stay.waited);
    }
  }
  stop = true;
}

class APast : public test::PoolScene {
 protected:
  APast() : PoolScene(1) {}
};

TEST_F(APast, HoldsWhatEachBorrowWaitedAndHeld) {
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

TEST(ErlangC, IsWhatTheTablesSay) {
  EXPECT_NEAR(erlang_c(1, 0.5), 0.5, 1e-12) << "with one server it is the load";
  EXPECT_NEAR(erlang_c(2, 1), 1.0 / 3, 1e-12);
  EXPECT_NEAR(erlang_c(10, 8), 0.4092, 1e-4);
  EXPECT_NEAR(erlang_c(100, 80), 0.01965, 1e-4);
  EXPECT_EQ(erlang_c(5, 5), 1) << "it cannot keep up";
}

TEST(AnAdvice, NeedsEnoughToRestOn) {
  EXPECT_FALSE(recommend_size(steady(19, milliseconds(10), milliseconds(5)), 4));
  EXPECT_TRUE(recommend_size(steady(20, milliseconds(10), milliseconds(5)), 4));
}

TEST(AnAdvice, FollowsFromRateAndHoldTime) {
  const auto advice = recommend_size(steady(1000, milliseconds(10), milliseconds(50)), 64);
  ASSERT_TRUE(advice);
  EXPECT_NEAR(advice->arrival_rate, 100, 0.01);
  EXPECT_EQ(advice->mean_hold, milliseconds(50));
  EXPECT_NEAR(advice->offered_load, 5, 0.01);
  EXPECT_EQ(advice->busy_median, 5U);
  EXPECT_EQ(advice->busy_most, 5U);
  EXPECT_EQ(advice->goal, milliseconds(5));
  // The smallest c whose 99th percentile meets the goal, by the formula itself.
  const auto late = [&](std::uint32_t c) {
    return erlang_c(c, advice->offered_load) * std::exp(-(c - advice->offered_load) * 0.005 / 0.05);
  };
  EXPECT_LE(late(advice->size), 0.01);
  EXPECT_GT(late(advice->size - 1), 0.01);
  ASSERT_TRUE(advice->expected_wait);
  EXPECT_LT(*advice->expected_wait, milliseconds(1));
  EXPECT_LT(*advice->expected_wait_as_it_is, *advice->expected_wait);
}

TEST(AnAdvice, SaysWhenThePresentSizeCannotKeepUp) {
  const auto advice = recommend_size(steady(1000, milliseconds(10), milliseconds(50)), 4);
  EXPECT_FALSE(advice->expected_wait_as_it_is);
  EXPECT_GT(advice->size, 5U);
}

TEST(AnAdvice, IsNeverLessThanWhatBurstsNeeded) {
  std::vector<BorrowRecord> stays;
  for (int burst = 0; burst < 50; ++burst) {
    for (int i = 0; i < 20; ++i) stays.push_back({kStart + seconds(burst), {}, milliseconds(100)});
  }
  const auto advice = recommend_size(stays, 64);
  EXPECT_EQ(advice->busy_most, 20U);
  EXPECT_GE(advice->size, 20U);
  EXPECT_EQ(advice->min_idle, 20U) << "usually none is lent, then twenty at once";
}

// ---- the simulation ----

Limits of_size(std::uint32_t size) {
  Limits limits;
  limits.size = size;
  limits.idle_timeout = seconds(60);
  return limits;
}

TEST(AReplay, OpensOneConnectionForRequestsThatNeverOverlap) {
  const Workload load{steady(100, milliseconds(100), milliseconds(10)), milliseconds(1), std::nullopt};
  const SimulationResult outcome = simulate(load, of_size(8), seconds(3));
  EXPECT_EQ(outcome.served, 100U);
  EXPECT_EQ(outcome.opened, 1U);
  EXPECT_EQ(outcome.reused, 99U);
  EXPECT_EQ(outcome.waited, 1U) << "the first one, for its dial";
  EXPECT_EQ(outcome.longest_wait, milliseconds(1));
}

TEST(AReplay, ShowsTheWaitsOfASmallerPoolAndTheConnectionsOfALargerOne) {
  std::vector<BorrowRecord> stays;
  for (int burst = 0; burst < 10; ++burst) {
    for (int i = 0; i < 8; ++i) stays.push_back({kStart + seconds(burst), {}, milliseconds(10)});
  }
  const Workload load{stays, {}, std::nullopt};
  const SimulationResult small = simulate(load, of_size(2), seconds(3)), large = simulate(load, of_size(8), seconds(3));
  EXPECT_EQ(small.served, 80U);
  EXPECT_EQ(small.opened, 2U);
  EXPECT_EQ(small.peak, 2U);
  EXPECT_EQ(small.longest_wait, milliseconds(30)) << "the fourth pair";
  EXPECT_EQ(large.opened, 8U);
  EXPECT_EQ(large.longest_wait, Duration::zero());
}

TEST(AReplay, TimesOutAndRefusesAsThePoolWould) {
  Limits limits = of_size(1);
  limits.max_waiting = 2;
  const Workload load{steady(5, microseconds(1), seconds(10)), milliseconds(1), std::nullopt};
  const SimulationResult outcome = simulate(load, limits, seconds(3));
  EXPECT_EQ(outcome.served, 1U);
  EXPECT_EQ(outcome.timed_out, 2U);
  EXPECT_EQ(outcome.refused, 2U);
}

TEST(AReplay, LetsTheOriginCloseWhatRests) {
  const Workload load{steady(10, seconds(10), milliseconds(1)), milliseconds(1), seconds(5)};
  const SimulationResult outcome = simulate(load, of_size(4), seconds(3));
  EXPECT_EQ(outcome.opened, 10U) << "each comes five seconds too late";
  EXPECT_EQ(simulate({load.stays, load.dial_time, std::nullopt}, of_size(4), seconds(3)).opened, 1U);
}

TEST(AReplay, IsTheSameEachTime) {
  std::vector<BorrowRecord> stays;
  std::uint64_t random = 42;
  for (int i = 0; i < 2000; ++i) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    stays.push_back({kStart + microseconds(500 * i), {}, microseconds(random >> 50)});
  }
  const Workload load{stays, milliseconds(2), seconds(1)};
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
TEST(AReplay, OfTheLargestPoolCostsByItsSizeAndNotBySizeTimesSize) {
  const double small = std::max(cost_of_a_replay(8192), cost_of_a_replay(8192));
  EXPECT_LT(cost_of_a_replay(65536), 50 * small);
}

TEST(AReplay, OfNothingIsNothing) {
  EXPECT_EQ(simulate({}, of_size(1), seconds(1)).served, 0U);
}

// ---- the explanation ----

bool says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(text) != std::string::npos; });
}

TEST(AnExplanation, NamesTheCausesTheirNumbersAndWhatFollows) {
  Destination::Snapshot s;
  s.opened[static_cast<std::size_t>(OpenCause::stale_found)] = 212;
  s.opened[static_cast<std::size_t>(OpenCause::all_busy)] = 28;
  s.closed[static_cast<std::size_t>(CloseCause::peer_closed)] = 236;
  s.connections[static_cast<std::size_t>(ConnectionStatus::idle)] = 4;
  s.failures[static_cast<std::size_t>(FailureReason::refused)] = 1;
  s.borrows = 480;
  s.created = 240;
  s.size = s.peak = 8;
  s.learned_idle = seconds(5);
  s.effective_limit = milliseconds(4500);
  const std::vector<std::string> lines = explain(s, {seconds(60), std::chrono::minutes(30), 0, 0});
  EXPECT_TRUE(lines[0].starts_with("212 of 240 connections were opened because")) << lines[0];
  EXPECT_TRUE(says(lines, "the origin closes idle connections after 5.0 s"));
  EXPECT_TRUE(says(lines, "28 of 240 connections were opened because every open one was borrowed"));
  EXPECT_TRUE(says(lines, "236 of 236 connections were closed: they were closed by the origin"));
  EXPECT_TRUE(says(lines, "480 borrows on 240 connections: each served 2.0 on average."));
  EXPECT_TRUE(says(lines, "retired after 4.5 s"));
  EXPECT_TRUE(says(lines, "1 dial or exchange failed (reason refused)"));
  EXPECT_TRUE(says(lines, "The pool has reached its size"));
}

TEST(AnExplanation, SpeaksOfOneAsOneAndOfSeveralAsSeveral) {
  Destination::Snapshot s;
  s.opened[static_cast<std::size_t>(OpenCause::warm_up)] = s.closed[static_cast<std::size_t>(CloseCause::error)] = 1;
  s.opened[static_cast<std::size_t>(OpenCause::tunnel)] = s.closed[static_cast<std::size_t>(CloseCause::expired)] = 2;
  s.connections[static_cast<std::size_t>(ConnectionStatus::idle)] = s.created = 1;
  s.borrows = 5;
  const std::vector<std::string> lines = explain(s, {});
  EXPECT_TRUE(says(lines, "1 of 3 connections was opened because a warm-up requested it (cause warm_up)."));
  EXPECT_TRUE(says(lines, "2 of 3 connections were opened because tunnels (CONNECT) take one each (cause tunnel)."));
  EXPECT_TRUE(says(lines, "1 of 3 connections was closed: it failed: its dial, or an exchange on it (cause error)."));
  EXPECT_TRUE(says(lines, "2 of 3 connections were closed: they had reached their maximum age"));
  EXPECT_TRUE(says(lines, "5 borrows on 1 connection."));
  EXPECT_TRUE(says(lines, "Now 1 of at most 0 is open (1 idle)"));
}

TEST(AnExplanation, HasAReasonForEachCause) {
  for (std::size_t i = 0; i < kOpenedNames.size(); ++i) {
    Destination::Snapshot s;
    s.opened[i] = 1;
    EXPECT_TRUE(says(explain(s, {}), "1 of 1 connection was opened because ")) << kOpenedNames[i];
    EXPECT_FALSE(says(explain(s, {}), "because  (cause")) << kOpenedNames[i];
  }
  for (std::size_t i = 0; i < kClosedNames.size(); ++i) {
    Destination::Snapshot s;
    s.opened[0] = s.closed[i] = 1;
    EXPECT_TRUE(says(explain(s, {}), "1 of 1 connection was closed: it ")) << kClosedNames[i];
    EXPECT_FALSE(says(explain(s, {}), "it  (cause")) << kClosedNames[i];
  }
  EXPECT_TRUE(says(explain({}, {}), "there was no request"));
}

// Borrows of zero duration begin and end at one instant, among others.
TEST(AnAdvice, CountsBorrowsThatTookNoTime) {
  std::vector<BorrowRecord> stays = steady(200, milliseconds(1), Duration::zero());
  const std::optional<Advice> brief = recommend_size(stays, 4);
  ASSERT_TRUE(brief);
  EXPECT_EQ(brief->busy_most, 1U);
  for (const BorrowRecord& stay : steady(200, milliseconds(1), milliseconds(3))) stays.push_back(stay);
  const std::optional<Advice> mixed = recommend_size(stays, 4);
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed->busy_most, 3U);
}

}  // namespace
}  // namespace carpool::pool
