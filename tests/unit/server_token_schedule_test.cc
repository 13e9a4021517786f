// Unit tests of the schedule of a token as a table: what happened, when, and the next action.
#include "proxy/server/oauth2/token_schedule.h"

#include <gtest/gtest.h>

namespace carpool::proxy {
namespace {

using Action = TokenSchedule::Action;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const Instant kStart = Instant{} + std::chrono::hours(1);

TEST(TokenSchedule, AsksAtOnceAndForOneTokenAtATime) {
  TokenSchedule schedule(1);
  EXPECT_EQ(schedule.due(kStart), Action::fetch);
  EXPECT_TRUE(schedule.fetching());
  EXPECT_EQ(schedule.due(kStart), Action::none);
  EXPECT_EQ(schedule.next(), kNever) << "the answer comes first";
  schedule.refused(kStart);
  EXPECT_EQ(schedule.due(kStart), Action::none);
}

TEST(TokenSchedule, RenewsBetweenSeventyAndEightyPercentOfALife) {
  Instant least = kNever, most = kStart;
  for (std::uint64_t seed = 1; seed < 300; ++seed) {
    TokenSchedule schedule(seed * 7919);
    ASSERT_EQ(schedule.due(kStart), Action::fetch);
    schedule.granted(kStart, seconds(100));
    EXPECT_TRUE(schedule.has_token());
    EXPECT_EQ(schedule.due(schedule.next() - milliseconds(1)), Action::none);
    least = std::min(least, schedule.next());
    most = std::max(most, schedule.next());
    EXPECT_EQ(schedule.due(schedule.next()), Action::fetch);
  }
  EXPECT_GE(least, kStart + seconds(70));
  EXPECT_LE(most, kStart + seconds(80));
  EXPECT_GT(most - least, seconds(5)) << "jitter";
}

TEST(TokenSchedule, GivesATokenUpAtItsEnd) {
  TokenSchedule schedule(1);
  ASSERT_EQ(schedule.due(kStart), Action::fetch);
  schedule.granted(kStart, seconds(100));
  ASSERT_EQ(schedule.due(kStart + seconds(90)), Action::fetch);
  EXPECT_EQ(schedule.next(), kStart + seconds(100)) << "even while another one is asked for";
  EXPECT_EQ(schedule.due(kStart + seconds(100)), Action::expire);
  EXPECT_FALSE(schedule.has_token());
  EXPECT_EQ(schedule.due(kStart + seconds(100)), Action::none);
}

TEST(TokenSchedule, PausesLongerAfterEachFailureUpToAMinute) {
  TokenSchedule schedule(42);
  Instant now = kStart;
  Duration before{};
  for (int failure = 0; failure < 70; ++failure) {
    ASSERT_EQ(schedule.due(now), Action::fetch) << failure;
    schedule.failed(now);
    const Duration pause = schedule.next() - now;
    const Duration longest = std::min<Duration>(seconds(1) * (std::int64_t{1} << std::min(failure, 6)), minutes(1));
    EXPECT_LE(pause, longest) << failure;
    EXPECT_GE(pause, longest * 3 / 4) << failure;
    if (failure < 5) {
      EXPECT_GT(pause, before) << failure;
    }
    before = pause;
    now = schedule.next();
  }
  ASSERT_EQ(schedule.due(now), Action::fetch);
  schedule.granted(now, seconds(100));
  EXPECT_EQ(schedule.failures(), 0U);
}

TEST(TokenSchedule, KeepsAValidTokenWhileItsRenewalFails) {
  TokenSchedule schedule(1);
  ASSERT_EQ(schedule.due(kStart), Action::fetch);
  schedule.granted(kStart, seconds(100));
  ASSERT_EQ(schedule.due(kStart + seconds(80)), Action::fetch);
  schedule.failed(kStart + seconds(81));
  EXPECT_TRUE(schedule.has_token());
  EXPECT_LE(schedule.next(), kStart + seconds(82));
}

TEST(TokenSchedule, AsksAtOnceForATokenInsteadOfARefusedOne) {
  TokenSchedule schedule(1);
  ASSERT_EQ(schedule.due(kStart), Action::fetch);
  schedule.granted(kStart, seconds(100));
  schedule.refused(kStart + seconds(1));
  EXPECT_EQ(schedule.due(kStart + seconds(1)), Action::fetch);
  schedule.failed(kStart + seconds(1));
  schedule.refused(kStart + seconds(1));
  EXPECT_EQ(schedule.due(kStart + seconds(1)), Action::none) << "the pause after a failure holds";
}

TEST(TokenSchedule, TakesOverATokenOfAnEarlierSchedule) {
  TokenSchedule lasting(1);
  lasting.inherited(kStart, kStart + seconds(100));
  EXPECT_EQ(lasting.due(kStart), Action::none);
  EXPECT_EQ(lasting.end(), kStart + seconds(100));
  EXPECT_EQ(lasting.due(kStart + seconds(80)), Action::fetch);
  TokenSchedule late(1);
  late.inherited(kStart, kStart - seconds(1));
  EXPECT_EQ(late.due(kStart), Action::expire);
  EXPECT_EQ(late.due(kStart), Action::fetch);
}

TEST(TokenSchedule, BoundsWhatAServerSaysAboutALife) {
  for (const Duration said : {Duration::zero(), Duration(seconds(-5)), Duration(milliseconds(1))}) {
    TokenSchedule schedule(1);
    ASSERT_EQ(schedule.due(kStart), Action::fetch);
    schedule.granted(kStart, said);
    EXPECT_GE(schedule.next(), kStart + seconds(1)) << "a token is not asked for without a pause";
  }
  TokenSchedule schedule(1);
  ASSERT_EQ(schedule.due(kStart), Action::fetch);
  schedule.granted(kStart, std::chrono::hours(24 * 365 * 100));
  EXPECT_LE(schedule.next(), kStart + TokenSchedule::kMaxLife);
}

}  // namespace
}  // namespace carpool::proxy
