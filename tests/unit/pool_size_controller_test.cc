// Unit tests of SizeController against an origin in virtual time: the size that it converges to, and how far it
// oscillates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "pool/policy/response_times.h"
#include "pool/policy/size_controller.h"

namespace carpool::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// An origin that serves `at_once` requests in `service` each, and divides itself among more. Beyond `refuses` requests
// it responds with 503, beyond `accepts` connections it refuses dials.
struct ModelOrigin {
  double at_once = 8;
  Duration service = milliseconds(20);
  double power = 1;  // 1: the throughput stays beyond at_once; more: it falls
  double refuses = 1e9, accepts = 1e9;
};

class Model {
 public:
  Model(std::uint32_t least, std::uint32_t most) : controller(least, most) {}

  // `clients` send one request after the other for `time`, sampled every half second, as by the sweep.
  void run(double clients, Duration time) {
    for (const Instant end = now_ + time; now_ < end;) {
      now_ += milliseconds(500);
      measure(clients, 0.5);
      if (!controller.settled(now_)) {
        begin();
        continue;
      }
      if (!SizeController::enough(seen_.responses + seen_.refused, begun_, now_)) continue;
      note(controller.update(seen_, now_));
      begin();
    }
  }
  std::uint32_t size() const { return controller.size(); }
  // The sizes since the last call.
  std::pair<std::uint32_t, std::uint32_t> swing() {
    const auto [low, high] = std::minmax_element(sizes_.begin(), sizes_.end());
    const std::pair<std::uint32_t, std::uint32_t> found{*low, *high};
    sizes_ = {size()};
    return found;
  }
  // The changes since the last call.
  std::map<std::string_view, int> reasons() { return std::exchange(reasons_, {}); }
  double noise = 0;  // medians vary by this part

  ModelOrigin origin;
  SizeController controller;

 private:
  void begin() {
    seen_ = {};
    begun_ = now_;
  }
  void measure(double clients, double passed) {
    const double cap = std::min<double>(size(), origin.accepts);
    const double at_origin = std::min(clients, cap);
    if (at_origin <= 0) return;
    const double refused_part = std::max(0.0, at_origin - origin.refuses) / at_origin;
    const double served = at_origin * (1 - refused_part);
    const double slower = std::pow(std::max(1.0, served / origin.at_once), origin.power);
    const double response = std::chrono::duration<double>(origin.service).count() * slower;
    const double answered = served / response * passed;
    seen_.median = Duration(static_cast<Duration::rep>(response * 1e9 * (1 + noise * random())));
    seen_.responses += static_cast<std::uint64_t>(answered);
    seen_.refused += static_cast<std::uint64_t>(at_origin * refused_part / response * passed);
    seen_.busy = std::max(seen_.busy, static_cast<std::uint32_t>(at_origin));
    seen_.open = static_cast<std::uint32_t>(at_origin);
    if (clients <= cap && size() <= origin.accepts) return;
    if (size() > origin.accepts && clients > cap) seen_.dials_refused += 2;
    seen_.at_size |= clients > size();
    const double wait = (clients - at_origin) / std::max(answered / passed, 1e-9);
    if (wait > std::chrono::duration<double>(controller.tolerable_wait()).count()) {
      seen_.late += static_cast<std::uint64_t>(answered) + static_cast<std::uint64_t>(clients - at_origin);
    }
  }
  void note(const std::optional<SizeChange>& change) {
    if (!change) return;
    EXPECT_NE(change->from, change->to);
    EXPECT_EQ(change->to, size());
    EXPECT_TRUE(size() >= controller.min_size() && size() <= controller.max_size()) << size();
    sizes_.push_back(change->to);
    ++reasons_[name(change->reason)];
  }
  double random() {
    seed_ = seed_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(seed_ >> 33) / (1U << 30) - 1;
  }

  LoadSample seen_;
  Instant now_{seconds(1000)}, begun_ = now_;
  std::vector<std::uint32_t> sizes_{size()};
  std::map<std::string_view, int> reasons_;
  std::uint64_t seed_ = 1;
};

TEST(ResponseCounts, HaveTheLowerOfTwoMiddleTimesAsTheirMedian) {
  ResponseTimes times;
  times.answered(milliseconds(1));
  times.answered(milliseconds(100));
  ResponseCounts counts;
  times.read(counts);
  EXPECT_LT(counts.median(), milliseconds(2));
}

TEST(SizeController, ALoadBelowTheSizeChangesNothing) {
  Model model(4, 256);
  model.run(4, seconds(600));
  EXPECT_EQ(model.size(), 4U);
  EXPECT_TRUE(model.reasons().empty());
}

TEST(SizeController, AnOriginWithoutALimitGetsWhatTheClientsAskForInSeconds) {
  Model model(4, 256);
  model.origin.at_once = 1000;
  model.run(100, seconds(8));
  EXPECT_EQ(model.size(), 128U) << "doubled five times";
  model.reasons();
  model.run(100, seconds(600));
  EXPECT_EQ(model.size(), 128U);
  EXPECT_TRUE(model.reasons().empty());
  model.run(1000, seconds(8));
  EXPECT_EQ(model.size(), 256U) << "never more than max_size";
}

TEST(SizeController, ASteadyOverloadConvergesToWhatTheOriginServesAtOnce) {
  for (const double at_once : {6.0, 8.0, 20.0, 50.0, 100.0}) {
    Model model(4, 256);
    model.origin.at_once = at_once;
    model.run(300, seconds(120));
    model.swing();
    model.run(300, seconds(600));
    const auto [low, high] = model.swing();
    EXPECT_GE(low, 0.95 * at_once) << at_once;
    EXPECT_LE(high, 1.5 * at_once + 1) << at_once;
  }
}

TEST(SizeController, OnceItHasConvergedItTriesASixteenthMoreOnceAMinute) {
  Model model(4, 256);
  model.origin.at_once = 32;
  model.run(300, seconds(300));
  model.swing();
  model.reasons();
  const std::uint32_t settled = model.size();
  model.run(300, seconds(640));
  const auto [low, high] = model.swing();
  EXPECT_EQ(low, settled);
  EXPECT_LE(high, settled + settled / 16);
  const auto reasons = model.reasons();
  EXPECT_LE(reasons.at("waits"), 11);
  EXPECT_EQ(reasons.size(), 2U) << "each of them is taken back";
}

TEST(SizeController, NoiseOfATenthKeepsItWithinAThirdAboveAndNeverFarBelow) {
  Model model(4, 256);
  model.origin.at_once = 32;
  model.noise = 0.1;
  model.run(300, seconds(120));
  model.swing();
  model.run(300, seconds(3600));
  const auto [low, high] = model.swing();
  EXPECT_GE(low, 16U) << "at most one step of the gradient";
  EXPECT_LE(high, 54U);
}

TEST(SizeController, AnOriginWhoseThroughputFallsUnderOverloadIsHeldWhereItIsHighest) {
  Model model(4, 256);
  model.origin.at_once = 16;
  model.origin.power = 2;
  model.run(300, seconds(300));
  model.swing();
  model.run(300, seconds(600));
  const auto [low, high] = model.swing();
  EXPECT_GE(low, 15U);
  EXPECT_LE(high, 20U);
}

TEST(SizeController, AnOriginThatLosesHalfOfItsInstancesGetsHalfAndAllAgainWhenTheyAreBack) {
  Model model(4, 256);
  model.origin.at_once = 40;
  model.run(300, seconds(200));
  model.origin.at_once = 16;
  model.reasons();
  model.run(300, seconds(60));
  EXPECT_GE(model.size(), 14U);
  EXPECT_LE(model.size(), 26U) << "its time to a response was two and a half times the lowest";
  EXPECT_GE(model.reasons()["latency"], 1);
  model.origin.at_once = 40;
  model.run(300, seconds(120));
  EXPECT_GE(model.size(), 36U);
}

TEST(SizeController, AnOriginThatIsSlowerByItselfKeepsItsConnections) {
  Model model(4, 256);
  model.origin.at_once = 40;
  model.run(300, seconds(200));
  const std::uint32_t before = model.size();
  model.reasons();
  model.swing();
  model.origin.service = milliseconds(100);
  model.run(300, seconds(20));
  EXPECT_EQ(model.size(), before);
  EXPECT_EQ(model.reasons()["restored"], 1);
  EXPECT_GE(model.swing().first, before / 2);
  model.run(300, seconds(600));
  EXPECT_EQ(model.reasons()["restored"], 0) << "the new time is the one to compare with";
}

TEST(SizeController, AnOriginThatIsSlowAndHardlyUsedKeepsItsSize) {
  Model model(4, 256);
  model.origin.at_once = 1000;
  model.run(100, seconds(20));
  const std::uint32_t before = model.size();
  model.reasons();
  model.origin.service = milliseconds(400);
  model.run(10, seconds(600));
  EXPECT_EQ(model.size(), before);
  EXPECT_TRUE(model.reasons().empty()) << "no shrink that is taken back later";
}

TEST(SizeController, BurstsAreServedByTheSizeThatOneOfThemNeeded) {
  Model model(4, 256);
  model.origin.at_once = 1000;
  model.run(60, seconds(10));
  const std::uint32_t grown = model.size();
  EXPECT_GE(grown, 60U);
  model.reasons();
  for (int burst = 0; burst < 20; ++burst) {
    model.run(1, seconds(60));
    model.run(60, seconds(5));
  }
  EXPECT_EQ(model.size(), grown);
  EXPECT_TRUE(model.reasons().empty());
}

TEST(SizeController, AnswersOf503ShrinkItToWhatIsServedAndTheProbesStayRare) {
  Model model(4, 256);
  model.origin.at_once = 1000;
  model.origin.refuses = 50;
  model.run(300, seconds(300));
  model.swing();
  model.reasons();
  model.run(300, seconds(640));
  const auto [low, high] = model.swing();
  EXPECT_GE(low, 37U);
  EXPECT_LE(high, 54U);
  EXPECT_LE(model.reasons()["refused"], 12);
}

TEST(SizeController, AnOriginThatAnswers503ToAllIsTriedWithTheLeastAndGrowsAgainAfterIt) {
  Model model(4, 256);
  model.origin.at_once = 64;
  model.run(300, seconds(100));
  model.origin.refuses = 0;
  model.run(300, seconds(30));
  EXPECT_EQ(model.size(), 4U);
  model.origin.refuses = 1e9;
  model.run(300, SizeController::kMaxHold + seconds(40));
  EXPECT_GE(model.size(), 55U);
}

TEST(SizeController, RefusedDialsLeaveTheConnectionsThatTheOriginAccepted) {
  Model model(4, 256);
  model.origin.at_once = 1000;
  model.origin.accepts = 20;
  model.run(300, seconds(300));
  model.swing();
  model.run(300, seconds(600));
  const auto [low, high] = model.swing();
  EXPECT_EQ(low, 20U);
  EXPECT_LE(high, 21U);
}

// ---- single samples ----

LoadSample waiting_for_more(std::uint64_t responses, Duration median) {
  LoadSample seen;
  seen.responses = responses;
  seen.median = median;
  seen.late = 10;
  seen.at_size = true;
  seen.open = seen.busy = 4;
  return seen;
}

TEST(SizeController, AnOriginThatIsDownSaysNothingAboutTheNumberOfConnections) {
  SizeController controller(4, 64);
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(10)), Instant(seconds(1))));
  ASSERT_FALSE(controller.update(waiting_for_more(0, {}), Instant(seconds(3)))) << "the growth is not judged yet";
  LoadSample down;
  down.dials_refused = 100;
  down.at_size = true;
  down.late = 50;
  EXPECT_FALSE(controller.update(down, Instant(seconds(4))));
  down.responses = 10;
  down.at_size = false;
  EXPECT_FALSE(controller.update(down, Instant(seconds(5)))) << "no connection is left";
  EXPECT_EQ(controller.size(), 8U);
}

TEST(SizeController, LongResponsesWithoutAnEndLetItGrowAsNothingIsKnownOfThem) {
  SizeController controller(4, 64);
  for (int n = 0; n < 4; ++n) {
    EXPECT_TRUE(controller.update(waiting_for_more(0, {}), Instant(seconds(10 * n + 1))));
  }
  EXPECT_EQ(controller.size(), 64U);
}

TEST(SizeController, AnOriginThatAnsweredBeforeAndDoesNotNowIsGivenNoMore) {
  SizeController controller(4, 64);
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(10)), Instant(seconds(1))));
  ASSERT_FALSE(controller.update({}, Instant(seconds(3))));
  EXPECT_FALSE(controller.update(waiting_for_more(0, {}), Instant(seconds(13))));
  EXPECT_EQ(controller.size(), 8U);
}

TEST(SizeController, AnOriginWhoseLastGrowthIsJudgedAndThatDoesNotAnswerNowIsGivenNoMore) {
  SizeController controller(4, 64);
  LoadSample calm = waiting_for_more(100, milliseconds(10));
  calm.late = 0;
  ASSERT_FALSE(controller.update(calm, Instant(seconds(1))));
  EXPECT_FALSE(controller.update(waiting_for_more(0, {}), Instant(seconds(3))));
  EXPECT_EQ(controller.size(), 4U);
}

TEST(SizeController, AnOriginThatIsSlowWithTheLeastSizeIsGivenNoMore) {
  SizeController controller(4, 64);
  LoadSample calm = waiting_for_more(100, milliseconds(10));
  calm.late = 0;
  ASSERT_FALSE(controller.update(calm, Instant(seconds(1))));
  EXPECT_FALSE(controller.update(waiting_for_more(100, milliseconds(20)), Instant(seconds(3))));
  EXPECT_FALSE(controller.update(waiting_for_more(10, milliseconds(20)), Instant(seconds(20)))) << "too few to judge";
  EXPECT_TRUE(controller.update(waiting_for_more(100, milliseconds(14)), Instant(seconds(40))));
}

TEST(SizeController, AGrowthIsJudgedBeforeTheNextOneAndAShrinkToo) {
  SizeController controller(4, 64);
  controller.bounds(4, 64, 8);
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(10)), Instant(seconds(1))));
  EXPECT_FALSE(controller.update(waiting_for_more(10, milliseconds(10)), Instant(seconds(3)))) << "too few to judge";
  EXPECT_TRUE(controller.update(waiting_for_more(100, milliseconds(10)), Instant(seconds(5))));
  ASSERT_EQ(controller.size(), 32U);
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(40)), Instant(seconds(7)))) << "it is taken back";
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(40)), Instant(seconds(9)))) << "it shrinks";
  const std::uint32_t shrunk = controller.size();
  ASSERT_LT(shrunk, 16U);
  EXPECT_FALSE(controller.update(waiting_for_more(10, milliseconds(10)), Instant(seconds(200))));
  EXPECT_EQ(controller.size(), shrunk);
}

TEST(SizeController, AGrowthThatIsTakenBackHalvesTheNextOneAndOneThatStaysDoublesItAgain) {
  SizeController controller(4, 256);
  controller.bounds(4, 256, 8);
  const auto update = [&controller](int second, int answer) {
    controller.update(waiting_for_more(100, milliseconds(answer)), Instant(seconds(second)));
    return controller.size();
  };
  EXPECT_EQ(update(1, 10), 16U) << "its double";
  EXPECT_EQ(update(3, 20), 8U);
  EXPECT_EQ(update(10, 10), 12U) << "half of it more";
  EXPECT_EQ(update(12, 10), 24U) << "that stayed: its double again";
}

TEST(SizeController, OneLateRequestOfAHundredIsTheLeastThatCounts) {
  SizeController controller(4, 64);
  LoadSample seen = waiting_for_more(1001, milliseconds(10));
  EXPECT_FALSE(controller.update(seen, Instant(seconds(1))));
  seen.responses = 1000;
  EXPECT_TRUE(controller.update(seen, Instant(seconds(2))));
}

TEST(SizeController, OneRefusedRequestOfTwentyIsTheLeastThatShrinksAndOneAloneNever) {
  SizeController controller(4, 64);
  controller.bounds(4, 64, 64);
  LoadSample seen;
  seen.responses = 191;
  seen.refused = 10;
  seen.busy = 40;
  EXPECT_FALSE(controller.update(seen, Instant(seconds(1))));
  seen.responses = 190;
  const std::optional<SizeChange> made = controller.update(seen, Instant(seconds(2)));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->to, 30U) << "a quarter less than was in use";
  LoadSample one;
  one.refused = 1;
  one.busy = 10;
  EXPECT_FALSE(controller.update(one, Instant(seconds(3))));
}

TEST(SizeController, AfterAChangeTwiceTheTimeToAResponsePassesBeforeItMeasuresAgain) {
  SizeController controller(4, 64);
  const Instant start{seconds(1)};
  ASSERT_TRUE(controller.update(waiting_for_more(100, milliseconds(10)), start));
  EXPECT_FALSE(controller.settled(start + milliseconds(399)));
  EXPECT_TRUE(controller.settled(start + milliseconds(400)));
  SizeController slow(4, 64);
  ASSERT_TRUE(slow.update(waiting_for_more(100, seconds(2)), start));
  EXPECT_FALSE(slow.settled(start + milliseconds(3999)));
  EXPECT_TRUE(slow.settled(start + seconds(4)));
}

TEST(SizeController, NewBoundsTakeEffectAtOnceAndKeepASizeThatFits) {
  SizeController controller(4, 64);
  controller.bounds(8, 32, 16);
  EXPECT_EQ(controller.size(), 16U);
  controller.bounds(20, 32, controller.size());
  EXPECT_EQ(controller.size(), 20U);
  controller.bounds(1, 5, controller.size());
  EXPECT_EQ(controller.size(), 5U);
  EXPECT_EQ(controller.max_size(), 5U);
}

// ---- the counts of responses ----

TEST(ResponseTimes, TheMedianIsWithinAThirtiethOfTheTrueOneFromMicrosecondsToAMinute) {
  for (const double time : {17e-6, 200e-6, 0.00123, 0.02, 0.7, 9.0, 60.0}) {
    ResponseTimes times;
    const Duration exact(static_cast<Duration::rep>(time * 1e9));
    for (int n = 0; n < 30; ++n) times.answered(exact);
    for (int n = 0; n < 29; ++n) times.answered(exact * 50);
    ResponseCounts counts;
    times.read(counts);
    EXPECT_EQ(counts.responses(), 59U);
    const double found = std::chrono::duration<double>(counts.median()).count();
    EXPECT_NEAR(found / time, 1, 1.0 / 30) << time;
  }
}

TEST(ResponseTimes, EveryTimeHasABucketAndLongerTimesHaveNoEarlierOne) {
  std::size_t last = 0;
  for (std::int64_t micros = 0; micros < std::int64_t{1} << 40; micros += 1 + micros / 50) {
    const std::size_t bucket = ResponseCounts::bucket_of(std::chrono::microseconds(micros));
    EXPECT_TRUE(bucket >= last && bucket < ResponseCounts::kBuckets) << micros;
    last = bucket;
  }
  EXPECT_EQ(last, ResponseCounts::kBuckets - 1);
  EXPECT_EQ(ResponseCounts::bucket_of(Duration(-5)), 0U);
}

TEST(ResponseTimes, TheCountsOfALoopAreAddedUpAndTheirDifferenceIsWhatPassed) {
  ResponseTimes one, other;
  one.answered(milliseconds(1));
  other.refused();
  ResponseCounts before;
  one.read(before);
  other.read(before);
  one.answered(milliseconds(8));
  other.refused();
  other.late();
  ResponseCounts after;
  one.read(after);
  other.read(after);
  const ResponseCounts passed = after.since(before);
  EXPECT_EQ(passed.responses(), 1U);
  EXPECT_NEAR(std::chrono::duration<double>(passed.median()).count(), 0.008, 0.0003);
  EXPECT_EQ(passed.refused, 1U);
  EXPECT_EQ(passed.late, 1U);
  EXPECT_EQ(ResponseCounts{}.median(), Duration::zero());
}

}  // namespace
}  // namespace carpool::pool
