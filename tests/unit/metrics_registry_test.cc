// Unit tests of per-request metrics: by origin, method and code, bounded in memory and in labels.
#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace carpool::metrics {
namespace {

using Counts = std::map<std::string, std::uint64_t>;  // "origin METHOD code"

Counts requests_of(const Registry& registry) {
  Counts counts;
  registry.for_each_shard([&](const std::string& origin, const OriginShard& shard) {
    shard.requests.for_each([&](MethodId method, std::uint16_t code, std::uint64_t n) {
      counts[origin + " " + std::string(kMethods[method]) + " " + std::to_string(code)] += n;
    });
  });
  return counts;
}

std::size_t shards_of(const Registry& registry) {
  std::size_t n = 0;
  registry.for_each_shard([&](const std::string&, const OriginShard&) { ++n; });
  return n;
}

TEST(Registry, CountsRequestsByOriginMethodAndCodeOverLoops) {
  Registry registry(2, 10);
  const OriginSlot a = registry.add_origin("http://a");
  registry.record_request(0, a, {"GET", 200, std::chrono::milliseconds(1), {}});
  registry.record_request(1, a, {"GET", 200, std::chrono::milliseconds(1), {}});
  registry.record_request(1, a, {"POST", 503, std::chrono::milliseconds(1), {}});
  EXPECT_EQ(requests_of(registry), (Counts{{"http://a GET 200", 2}, {"http://a POST 503", 1}}));
}

TEST(Registry, LetsNoClientInventAMethodLabelAndNoOriginACode) {
  Registry registry(1, 10);
  const OriginSlot a = registry.add_origin("a");
  registry.record_request(0, a, {"get", 200, {}, {}});
  registry.record_request(0, a, {"BREW", 200, {}, {}});
  registry.record_request(0, a, {"GET", 999, {}, {}});
  registry.record_request(0, a, {"GET", 700, {}, {}});
  EXPECT_EQ(requests_of(registry), (Counts{{"a other 200", 2}, {"a GET " + std::to_string(kOtherCode), 2}}));
}

TEST(Registry, CountsARequestThatNeverHadAnOriginOrAStatus) {
  Registry registry(1, 10);
  registry.record_request(0, kNoOrigin, {"GET", 0, {}, {}});
  EXPECT_EQ(requests_of(registry), (Counts{{"none GET 0", 1}}));
}

TEST(Registry, LosesNoRequestWhenAnOriginAnswersWithEveryCodeThereIs) {
  Registry registry(1, 10);
  const OriginSlot a = registry.add_origin("a");
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t code = 100; code < 600; ++code) {
      for (const std::string_view method : kMethods) registry.record_request(0, a, {method, code, {}, {}});
    }
  }
  const Counts counts = requests_of(registry);
  std::uint64_t sum = 0;
  for (const auto& [name, n] : counts) sum += n;
  EXPECT_EQ(sum, 3U * 500 * kMethods.size());
  EXPECT_LE(counts.size(), 48 + kMethods.size());
  EXPECT_EQ(counts.at("a GET 100"), 3U) << "who came first keeps an exact count";
}

TEST(Registry, ObservesTheWaitOnlyOfThoseWhoAskedThePool) {
  Registry registry(1, 10);
  const OriginSlot a = registry.add_origin("a");
  registry.record_request(0, a, {"GET", 200, std::chrono::seconds(1), std::chrono::milliseconds(3)});
  registry.record_request(0, a, {"GET", 400, std::chrono::seconds(1), {}});
  registry.for_each_shard([](const std::string&, const OriginShard& shard) {
    EXPECT_EQ(shard.request.read().count(), 2U);
    EXPECT_EQ(shard.wait.read().count(), 1U);
  });
}

TEST(Registry, CountsRetriesByTheirProofAndHandshakes) {
  Registry registry(1, 10);
  const OriginSlot a = registry.add_origin("a");
  registry.record(0, a, RetryReason::idempotent_reused);
  registry.record_reset(0, a, "CANCEL");
  registry.record_reset(0, a, "FRAME_SIZE_ERROR");
  registry.record_handshake(0, a, std::chrono::milliseconds(2));
  registry.for_each_shard([](const std::string&, const OriginShard& shard) {
    EXPECT_EQ(shard.retries[3].read(), 1U);
    EXPECT_EQ(shard.resets[1].read(), 1U);
    EXPECT_EQ(shard.resets.back().read(), 1U) << "a rarer code";
    EXPECT_EQ(shard.handshake.read().count(), 1U);
  });
}

TEST(Registry, GivesOneOriginOneSlotForEver) {
  Registry registry(1, 10);
  const OriginSlot a = registry.add_origin("a");
  EXPECT_NE(registry.add_origin("b"), a);
  EXPECT_EQ(registry.add_origin("a"), a);
  EXPECT_EQ(registry.slot_of("a"), a);
}

TEST(Registry, SumsOriginsBeyondTheCapIntoOther) {
  Registry registry(1, 2);
  for (const char* label : {"a", "b", "c", "d"}) {
    registry.record_request(0, registry.add_origin(label), {"GET", 200, {}, {}});
  }
  EXPECT_EQ(requests_of(registry), (Counts{{"a GET 200", 1}, {"b GET 200", 1}, {"other GET 200", 2}}));
  EXPECT_EQ(registry.slot_of("c"), kOtherOrigin);
}

TEST(Registry, KeepsALabelForWhatTheConfigurationNamesWhoeverCameBefore) {
  Registry registry(1, 2);
  registry.keep_origin("first");
  for (const char* label : {"a", "b", "c"}) registry.add_origin(label);
  EXPECT_EQ(registry.slot_of("b"), kOtherOrigin) << "it is one of the two";
  registry.keep_origin("late");
  EXPECT_NE(registry.slot_of("late"), kOtherOrigin) << "a reload names it when strangers hold every place";
  registry.keep_origin("one too many");
  EXPECT_EQ(registry.slot_of("one too many"), kOtherOrigin);
  EXPECT_NE(registry.slot_of("a"), kOtherOrigin) << "and nobody loses a label";
}

TEST(Registry, MakesAShardOnlyWhereALoopServedAnOrigin) {
  Registry registry(255, 200);
  const OriginSlot a = registry.add_origin("a");
  registry.add_origin("b");
  EXPECT_EQ(shards_of(registry), 0U);
  registry.record_request(254, a, {"GET", 200, {}, {}});
  registry.record_request(254, a, {"GET", 200, {}, {}});
  EXPECT_EQ(shards_of(registry), 1U);
}

TEST(Registry, IsReadWhileLoopsWriteAndNeverGoesBack) {
  constexpr unsigned kLoops = 3;
  Registry registry(kLoops, 4);
  std::atomic<unsigned> running{kLoops};
  std::vector<std::thread> loops;
  for (unsigned loop = 0; loop < kLoops; ++loop) {
    loops.emplace_back([&, loop] {
      for (int i = 0; i < 3000; ++i) {
        const OriginSlot slot = registry.add_origin("origin" + std::to_string(i % 7));
        registry.record_request(static_cast<LoopId>(loop), slot,
                                {"GET", static_cast<std::uint16_t>(200 + i % 5), std::chrono::microseconds(i), {}});
        registry.clients().add(static_cast<LoopId>(loop));
      }
      --running;
    });
  }
  Counts before;
  while (running != 0) {
    const Counts now = requests_of(registry);
    for (const auto& [name, n] : before) ASSERT_GE(now.at(name), n);
    before = now;
  }
  for (auto& loop : loops) loop.join();
  std::uint64_t sum = 0;
  for (const auto& [name, n] : requests_of(registry)) sum += n;
  EXPECT_EQ(sum, kLoops * 3000U);
  EXPECT_EQ(registry.client_count(), kLoops * 3000U);
}

}  // namespace
}  // namespace carpool::metrics
