// Unit tests of the history behind the page's plots: rates, quantiles, the bound of its memory, origins that appear and
// disappear.
#include "proxy/server/admin/history.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "pool/destination/snapshot.h"
#include "proxy/server/admin/failing.h"
#include "server_admin_support.h"

namespace carpool::proxy::admin {
namespace {

using namespace std::chrono_literals;

const std::string kOrigin = "http://a.example";

class Kept {
 public:
  Kept() {
    view_.list.resize(1);  // kOrigin
    history_.sample(view_, now_);
  }
  FakeView& view() { return view_; }
  const History& history() const { return history_; }
  void ask(std::uint64_t requests, std::uint64_t failed, std::size_t bucket, const std::string& origin = kOrigin) {
    TrafficInfo& counts = view_.counts[origin];
    counts.requests += requests;
    counts.failed += failed;
    counts.times[bucket] += requests;
  }
  void pass(int points = 1) {
    for (int i = 0; i < points; ++i) history_.sample(view_, now_ += History::kEvery);
  }
  std::vector<History::Point> points(const std::string& origin = {}) const {
    const auto past = history_.of(origin, now_);
    return past ? past->points : std::vector<History::Point>();
  }

 private:
  FakeView view_;
  History history_;
  Instant now_ = Instant{} + 1h;
};

TEST(History, HasRatesAndQuantilesOfEachIntervalAndTheStateAtItsEnd) {
  Kept kept;
  EXPECT_TRUE(kept.points().empty()) << "a rate needs two readings";
  kept.ask(100, 20, 3);  // between 0.5 and 1 ms
  kept.pass();
  kept.pass();
  for (const std::string& origin : {std::string(), kOrigin}) {
    const auto points = kept.points(origin);
    ASSERT_EQ(points.size(), 2U) << origin;
    EXPECT_FLOAT_EQ(points[0].requests, 20);
    EXPECT_FLOAT_EQ(points[0].failed, 4);
    EXPECT_NEAR(points[0].p50, 0.00075, 1e-6);
    EXPECT_NEAR(points[0].p99, 0.000995, 1e-6);
    EXPECT_EQ(points[0].waiting, 2U);
    EXPECT_EQ(points[0].open, 4U);
    EXPECT_FLOAT_EQ(points[1].requests, 0);
    EXPECT_LT(points[1].p50, 0) << "no request ended";
  }
  EXPECT_EQ(kept.history().last(1min, kOrigin).requests, 100U);
  EXPECT_EQ(kept.history().last(1min, kOrigin).failed, 20U);
}

class Failing : public testing::Test {
 protected:
  const std::optional<PoolInfo::Failing>& found() {
    std::vector<PoolInfo> pools = kept.view().list;
    find_failing(kept.view(), pools);
    return last = pools.front().failing;
  }
  Failing() { kept.view().kept = &kept.history(); }
  Kept kept;
  std::optional<PoolInfo::Failing> last;
};

TEST_F(Failing, IsAnOriginMostOfWhoseRecentRequestsFailed) {
  EXPECT_FALSE(found()) << "no request";
  kept.ask(100, 0, 3);
  kept.pass(4);
  EXPECT_FALSE(found());
  kept.ask(10, 5, 3);
  kept.pass();
  ASSERT_TRUE(found()) << "half of the last 15 seconds";
  EXPECT_EQ(last->requests, 10U);
  EXPECT_EQ(last->failed, 5U);
  EXPECT_EQ(last->time, Duration(15s));
  EXPECT_EQ(last->reason, "") << "of a dial that failed before the last one";
  kept.pass(3);
  EXPECT_FALSE(found()) << "5 of 110 of the last minute";
  kept.pass(12);
  EXPECT_FALSE(found()) << "it served earlier ones";
}

TEST_F(Failing, IsAnOriginThatNeverServedARequestOrWhoseLastDialFailed) {
  kept.ask(3, 3, 3);
  ASSERT_TRUE(found()) << "before the first point";
  EXPECT_FALSE(last->time);
  kept.ask(1, 0, 3);
  EXPECT_FALSE(found());
  kept.view().list.front().snapshot.probing = true;
  kept.view().list.front().snapshot.last_dial_failed = pool::FailureReason::dns;
  ASSERT_TRUE(found());
  EXPECT_EQ(last->reason, "dns") << "of the last dial";
}

TEST(History, KeepsFifteenMinutesAndForgetsOlderPoints) {
  Kept kept;
  kept.ask(5, 0, 0);
  kept.pass(static_cast<int>(History::kPoints));
  EXPECT_EQ(kept.points().size(), History::kPoints);
  EXPECT_FLOAT_EQ(kept.points().front().requests, 1);
  kept.pass();
  EXPECT_EQ(kept.points().size(), History::kPoints);
  EXPECT_FLOAT_EQ(kept.points().front().requests, 0);
  EXPECT_EQ(History::kPoints * History::kEvery, 15min);
  EXPECT_EQ(kept.history().last(1min, kOrigin).requests, 0U);
}

TEST(History, HasItsPointsInOrderHoweverOftenTheRingIsFull) {
  Kept kept;
  const int passed = static_cast<int>(History::kPoints) + 7;
  for (int i = 1; i <= passed; ++i) {
    kept.ask(static_cast<std::uint64_t>(5 * i), 0, 0);
    kept.pass();
  }
  const auto points = kept.points(kOrigin);
  ASSERT_EQ(points.size(), History::kPoints) << "an origin that has a pool is kept";
  EXPECT_FLOAT_EQ(points.front().requests, 8);
  EXPECT_FLOAT_EQ(points.back().requests, static_cast<float>(passed));
}

TEST(History, CountsForTheLastMinuteWhatItBrought) {
  Kept kept;
  kept.ask(100, 10, 0);
  kept.pass();
  kept.ask(5, 1, 0);
  kept.pass(12);
  EXPECT_EQ(kept.history().last(1min, kOrigin).requests, 5U);
  EXPECT_EQ(kept.history().last(1min, kOrigin).failed, 1U);
  EXPECT_EQ(kept.history().last(2min, kOrigin).requests, 105U);
}

TEST(History, HasOnePointPerIntervalOfAnOriginWhoseEarlierPoolStillServes) {
  Kept kept;
  PoolInfo earlier = kept.view().list.front();
  earlier.replaced = true;
  earlier.snapshot.waiting = 7;
  kept.view().list.push_back(earlier);
  kept.pass(3);
  ASSERT_EQ(kept.points(kOrigin).size(), 3U);
  EXPECT_EQ(kept.points(kOrigin).front().waiting, 2U) << "of the pool in force";
  EXPECT_EQ(kept.points().front().waiting, 9U);
}

TEST(History, CountsTheFirstRequestsOfAnOriginThatIsNew) {
  Kept kept;
  PoolInfo fresh = kept.view().list.front();
  fresh.origin = "http://new.example";
  kept.view().list.push_back(fresh);
  kept.ask(10, 10, 0, fresh.origin);
  kept.pass();
  ASSERT_EQ(kept.points(fresh.origin).size(), 1U);
  EXPECT_FLOAT_EQ(kept.points(fresh.origin).front().failed, 2);
  EXPECT_EQ(kept.points().front().open, 8U) << "of both";
}

TEST(History, KeepsAnOriginWithoutAPoolForFifteenMinutes) {
  Kept kept;
  kept.ask(5, 0, 0);
  kept.pass();
  kept.view().list.clear();
  kept.pass(static_cast<int>(History::kPoints) - 1);
  ASSERT_EQ(kept.points(kOrigin).size(), History::kPoints);
  EXPECT_EQ(kept.points(kOrigin).back().open, 0U);
  kept.pass();
  EXPECT_TRUE(kept.points(kOrigin).empty());
  EXPECT_EQ(kept.history().origins(), 0U);
}

TEST(History, OriginsBeyondTheLimitCountInTheSumOnly) {
  Kept kept;
  const PoolInfo one = kept.view().list.front();
  for (std::size_t i = 0; i < History::kMaxOrigins; ++i) {
    kept.view().list.push_back(one);
    kept.view().list.back().origin = "http://n" + std::to_string(1000 + i) + ".example";
    kept.ask(5, 0, 0, kept.view().list.back().origin);
  }
  kept.pass();
  EXPECT_EQ(kept.history().origins(), History::kMaxOrigins);
  EXPECT_TRUE(kept.points(kept.view().list.back().origin).empty());
  EXPECT_FLOAT_EQ(kept.points().front().requests, static_cast<float>(History::kMaxOrigins));
}

TEST(History, AnOriginThatGetsARingLaterStartsFromItsCounters) {
  Kept kept;
  PoolInfo late = kept.view().list.front();
  for (std::size_t i = 0; i < History::kMaxOrigins; ++i) {
    late.origin = "http://n" + std::to_string(i) + ".example";
    kept.view().list.push_back(late);
  }
  kept.ask(500, 500, 0, late.origin);
  kept.pass();
  ASSERT_TRUE(kept.points(late.origin).empty()) << "no ring is left for the last one";
  kept.view().list = {late};
  kept.pass(static_cast<int>(History::kPoints));
  kept.ask(5, 0, 0, late.origin);
  kept.pass();
  ASSERT_EQ(kept.points(late.origin).size(), 1U);
  EXPECT_FLOAT_EQ(kept.points(late.origin).front().requests, 1);
  EXPECT_FLOAT_EQ(kept.points(late.origin).front().failed, 0);
}

TEST(History, AnOriginThatComesBackLaterStartsFromItsCounters) {
  Kept kept;
  kept.ask(500, 0, 0);
  kept.pass();
  const std::vector<PoolInfo> list = std::exchange(kept.view().list, {});
  kept.pass(static_cast<int>(History::kPoints));
  ASSERT_EQ(kept.history().origins(), 0U);
  kept.view().list = list;
  kept.ask(5, 0, 0);
  kept.pass();
  ASSERT_EQ(kept.points(kOrigin).size(), 1U);
  EXPECT_FLOAT_EQ(kept.points(kOrigin).front().requests, 1);
}

TEST(History, OriginsThatAreUsedOnceLeaveNothing) {
  Kept kept;
  const PoolInfo one = kept.view().list.front();
  for (std::size_t i = 0; i < 10 * History::kMaxOrigins; ++i) {
    kept.view().list.push_back(one);
    kept.view().list.back().origin = "http://n" + std::to_string(i) + ".example";
  }
  kept.pass();
  EXPECT_EQ(kept.history().known(), History::kMaxOrigins);
  kept.view().list.clear();
  kept.pass(static_cast<int>(History::kPoints));
  EXPECT_EQ(kept.history().known(), 0U);
}

TEST(History, CountersThatShrankAreNoRequests) {
  Kept kept;
  kept.ask(100, 100, 0);
  kept.pass();
  kept.view().counts.clear();
  kept.pass();
  EXPECT_FLOAT_EQ(kept.points().back().requests, 0);
}

TEST(Quantile, LiesInTheBucketOfItsRequest) {
  std::array<std::uint64_t, metrics::kBuckets> times{};
  EXPECT_LT(quantile(times, 0.5), 0);
  times.back() = 3;
  EXPECT_FLOAT_EQ(quantile(times, 0.5), 60) << "above every bound";
}

}  // namespace
}  // namespace carpool::proxy::admin
