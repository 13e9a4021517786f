// Unit tests of RateLimiter: the rate and the burst hold for all threads together.
#include "proxy/upstream/origin/rate_limiter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace carpool::proxy {
namespace {

constexpr Instant kStart{std::chrono::seconds(1000)};
constexpr Duration kMs = std::chrono::milliseconds(1);

int taken(RateLimiter& limit, Instant now, int tries) {
  int count = 0;
  for (int i = 0; i < tries; ++i) count += limit.admit(now) ? 1 : 0;
  return count;
}

TEST(ARateLimit, LetsEverybodyThroughWhereThereIsNone) {
  RateLimiter limit;
  limit.open(0, 5);
  EXPECT_EQ(taken(limit, kStart, 1000), 1000);
}

TEST(ARateLimit, LetsABurstThroughAndThenOneEachInterval) {
  RateLimiter limit;
  limit.open(10, 3);
  EXPECT_EQ(taken(limit, kStart, 100), 3);
  EXPECT_EQ(taken(limit, kStart + 99 * kMs, 100), 0);
  EXPECT_EQ(taken(limit, kStart + 100 * kMs, 100), 1);
  EXPECT_EQ(taken(limit, kStart + 250 * kMs, 100), 1);
  EXPECT_EQ(taken(limit, kStart + std::chrono::seconds(60), 100), 3) << "what was not used is kept, up to the burst";
}

TEST(ARateLimit, WithoutABurstOfItsOwnIsASecondsWorth) {
  RateLimiter limit;
  limit.open(7, 0);
  EXPECT_EQ(taken(limit, kStart, 100), 7);
}

TEST(ARateLimit, ReturnsTheDelayOfAWaitingRequestAndKeepsItsPlace) {
  RateLimiter limit;
  limit.open(10, 1);
  EXPECT_EQ(limit.delay_until_allowed(kStart, 250 * kMs), Duration::zero());
  EXPECT_EQ(limit.delay_until_allowed(kStart, 250 * kMs), 100 * kMs);
  EXPECT_EQ(limit.delay_until_allowed(kStart, 250 * kMs), 200 * kMs);
  EXPECT_EQ(limit.delay_until_allowed(kStart, 250 * kMs), std::nullopt) << "300 ms are too long";
  EXPECT_EQ(limit.delay_until_allowed(kStart + 50 * kMs, 250 * kMs), 250 * kMs)
      << "who was refused took nobody's place";
}

TEST(ARateLimit, ThatTakesThePlaceOfAnEqualOneGrantsNoSecondBurst) {
  for (const bool outlives : {true, false}) {
    RateLimiter before, after, faster;
    before.open(10, 3);
    after.open(10, 3);
    faster.open(20, 3);
    EXPECT_EQ(taken(before, kStart, 2), 2);
    after.follow(before, outlives);
    faster.follow(before, outlives);
    EXPECT_EQ(taken(after, kStart, 100), 1);
    EXPECT_EQ(taken(before, kStart, 100), outlives ? 0 : 1) << "a loop that still uses it counts with the others";
    EXPECT_EQ(taken(faster, kStart, 100), 3) << "other limits begin anew";
  }
}

TEST(ARateLimit, IsExactWhereManyThreadsAsk) {
  constexpr int kThreads = 4, kTries = 20'000;
  constexpr std::uint32_t kRate = 100'000, kBurst = 50;
  RateLimiter limit;
  limit.open(kRate, kBurst);
  std::vector<int> each(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&limit, &mine = each[static_cast<std::size_t>(t)]] {
      for (int i = 0; i < kTries; ++i) mine += limit.admit(kStart + std::chrono::microseconds(i)) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  int all = 0;
  for (const int mine : each) all += mine;
  // 20 ms of virtual time at one each 10 us; all threads see all of it.
  EXPECT_LE(all, static_cast<int>(kBurst) + kTries / 10);
  EXPECT_GE(all, kTries / 10);
}

}  // namespace
}  // namespace carpool::proxy
