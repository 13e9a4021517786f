// Unit tests of the certificates of intercepted origins: signed with the configuration, and renewed before they expire.
#include "proxy/server/intercept_leaves.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "proxy/exchange/listen_point.h"
#include "proxy/net/tls/authority_files.h"

namespace carpool::proxy {
namespace {

using std::chrono::hours;

class TheLeaves : public testing::Test {
 protected:
  explicit TheLeaves(hours life = hours(24 * 30)) {
    std::filesystem::create_directories(folder);
    const Status made = tls::create_authority(folder, {"api.test"}, life);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    config.intercept.ca_dir = folder;
    config.origins.resize(1);
    config.origins.front().origin = *pool::parse_origin("https://api.test");
    config.origins.front().intercept = true;
    read();
  }
  ~TheLeaves() override { std::filesystem::remove_all(folder); }
  void read() {
    Result<InterceptLeaves::Plan> plan = leaves.prepare(config);
    ASSERT_TRUE(plan) << plan.fault().detail;
    leaves.apply(std::move(*plan));
  }
  ListenerIdentity shown() const {
    return intercepts.leaf("https://api.test").value_or(Intercepts::Leaf{nullptr, 0}).identity;
  }

  const std::string folder = testing::TempDir() + "carpool-leaves-" + std::to_string(::getpid());
  const WallTime now = std::chrono::system_clock::now();
  config::Config config;
  Intercepts intercepts;
  InterceptLeaves leaves{intercepts};
};

TEST_F(TheLeaves, AreRenewedWhenAThirdOfTheirLifeIsLeft) {
  const ListenerIdentity first = shown();
  ASSERT_NE(first, nullptr);
  leaves.renew(now + hours(15));
  EXPECT_EQ(shown(), first);
  leaves.renew(now + hours(17));
  EXPECT_NE(shown(), first);
  ASSERT_NE(shown(), nullptr);
}

TEST_F(TheLeaves, AreRenewedWhenTheClockWasSetBackToATimeBeforeThem) {
  const ListenerIdentity first = shown();
  leaves.renew(now - std::chrono::minutes(4));
  EXPECT_EQ(shown(), first) << "clocks may differ by that";
  leaves.renew(now - hours(1));
  const ListenerIdentity second = shown();
  EXPECT_NE(second, first);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(leaves.sample(now - hours(1)).leaves, 1u);
  EXPECT_EQ(leaves.sample(now - hours(2)).leaves, 0u);
}

TEST_F(TheLeaves, AreShownOnlyWhileTheClockIsInTheirTime) {
  const ListenerIdentity shown_now = shown();
  EXPECT_TRUE(is_in_time(shown_now, now - std::chrono::minutes(4))) << "clocks may differ by that";
  EXPECT_TRUE(is_in_time(shown_now, now + hours(23)));
  EXPECT_FALSE(is_in_time(shown_now, now - hours(1))) << "set back, and not renewed yet";
  EXPECT_FALSE(is_in_time(shown_now, now + hours(25)));
  EXPECT_FALSE(is_in_time(nullptr, now));
}

TEST_F(TheLeaves, ComeBackWithTheClockThatHadPassedTheEndOfTheirAuthority) {
  leaves.renew(now + hours(24 * 31));
  EXPECT_EQ(shown(), nullptr);
  leaves.renew(now);
  EXPECT_NE(shown(), nullptr);
}

TEST_F(TheLeaves, StayWithAReloadThatChangesNothingOfThem) {
  const ListenerIdentity first = shown();
  read();
  EXPECT_EQ(shown(), first);
  config.origins.front().intercept = false;
  read();
  EXPECT_FALSE(intercepts.leaf("https://api.test"));
}

TEST_F(TheLeaves, AreCountedWithTheLifeOfTheirAuthority) {
  leaves.renew(now + hours(17));
  const metrics::InterceptSample sample = leaves.sample(now);
  EXPECT_EQ(sample.minted, 2u);
  EXPECT_EQ(leaves.sample(now + hours(17)).leaves, 1u);
  ASSERT_TRUE(sample.authority_seconds);
  EXPECT_NEAR(*sample.authority_seconds, 30 * 86'400, 600);
  EXPECT_EQ(leaves.sample(now + hours(60)).leaves, 0u) << "it has ended, and nobody renewed it";
  config.origins.front().intercept = false;
  read();
  EXPECT_FALSE(leaves.sample(now).authority_seconds);
  EXPECT_EQ(leaves.sample(now).minted, 2u) << "a counter";
}

TEST_F(TheLeaves, AreInForceUntilTheirOriginOrTheirAuthorityChanges) {
  const std::uint64_t number = intercepts.leaf("https://api.test")->authority;
  const Interception inside{*pool::parse_origin("https://api.test"), number};
  EXPECT_TRUE(intercepts.in_force(inside));
  read();
  EXPECT_TRUE(intercepts.in_force(inside)) << "nothing changed";
  leaves.renew(now + hours(17));
  EXPECT_TRUE(intercepts.in_force(inside)) << "another certificate of the same authority";
  config.origins.front().intercept = false;
  read();
  EXPECT_FALSE(intercepts.in_force(inside));
  config.origins.front().intercept = true;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(tls::create_authority(folder, {"api.test"}, hours(24)));
  read();
  EXPECT_FALSE(intercepts.in_force(inside)) << "another authority";
  EXPECT_TRUE(intercepts.in_force({inside.origin, number + 1}));
}

TEST_F(TheLeaves, HaveRefusalsByKindOfClientAndSuspectWhoLeavesWithoutAWord) {
  using enum metrics::CertificateAlert;
  using Noted = Intercepts::Noted;
  const Instant start = Clock::now();
  const Interception one{*pool::parse_origin("https://api.test"), 1, {"10.0.0.1 a", metrics::TlsOffer::tls13_h1, 7}};
  Interception second = one;
  second.client.suites = 8;
  EXPECT_EQ(intercepts.note_refusal(one, none, start), Noted::suspicion);
  EXPECT_EQ(intercepts.note_refusal(second, none, start), Noted::suspicion) << "another client";
  EXPECT_FALSE(intercepts.refused_before(one, start));
  intercepts.note_trust(one);
  EXPECT_EQ(intercepts.note_refusal(one, none, start), Noted::suspicion);
  EXPECT_EQ(intercepts.note_refusal(one, none, start), Noted::first_refusal);
  EXPECT_EQ(intercepts.note_refusal(second, unknown_ca, start), Noted::refusal);
  EXPECT_TRUE(intercepts.refused_before(one, start) && intercepts.refused_before(second, start));
  intercepts.note_trust(one);
  EXPECT_TRUE(intercepts.refused_before(one, start)) << "a refusal stays";
  EXPECT_FALSE(intercepts.refused_before(one, start + std::chrono::minutes(10)));
  const std::vector<metrics::RefusalSample> all = leaves.refusals_at("https://api.test");
  ASSERT_EQ(all.size(), 2u);
  config.origins.push_back(config.origins.front());
  config.origins.back().origin = *pool::parse_origin("https://api.test:8443");
  read();
  EXPECT_TRUE(leaves.refusals_at("https://api.test:8443").empty()) << "those of another origin";
  EXPECT_EQ(leaves.refusals_at("https://api.test").size(), 2u);
  EXPECT_TRUE(all[0].alert == "unknown_ca" && all[1].alert == "none" && all[0].refusals == 1) << all[0].alert;
  config.origins.front().intercept = false;
  read();
  EXPECT_TRUE(leaves.refusals_at("https://api.test").empty()) << "it is not intercepted any more";
}

TEST_F(TheLeaves, AreSignedAnewByAnotherAuthority) {
  const ListenerIdentity first = shown();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(tls::create_authority(folder, {"api.test"}, hours(24)));
  read();
  EXPECT_NE(shown(), first);
}

TEST_F(TheLeaves, DoNotHoldUpWhoSamplesWhileTheyAreSigned) {
  constexpr std::size_t kMany = 1000;
  config.origins.resize(kMany, config.origins.front());
  for (std::size_t n = 0; n < kMany; ++n) {
    config.origins[n].origin = *pool::parse_origin("https://h" + std::to_string(n) + ".api.test");
  }
  read();
  const std::uint64_t before = leaves.sample(now).minted;
  std::atomic<bool> done = false;
  bool between = false;
  std::thread renewal([this, &done] {
    leaves.renew(now + hours(17));
    done = true;
  });
  while (!done) {
    const std::uint64_t minted = leaves.sample(now).minted;
    between = between || (before < minted && minted < before + kMany);
  }
  renewal.join();
  EXPECT_TRUE(between) << "a sample waited until all were signed";
  EXPECT_EQ(leaves.sample(now + hours(17)).leaves, kMany);
}

TEST_F(TheLeaves, AreOfInterceptedOriginsAlone) {
  config.origins.resize(2);
  config.origins.back().origin = *pool::parse_origin("https://other.test");
  read();
  EXPECT_FALSE(intercepts.leaf("https://other.test"));
  EXPECT_EQ(leaves.sample(now).minted, 1u);
}

TEST_F(TheLeaves, ThatCannotBeSignedNameTheOriginOrTheKey) {
  config.origins.front().origin = *pool::parse_origin("https://not-permitted.test");
  const auto beyond = leaves.prepare(config);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.fault().detail.rfind("the intercepted origin https://not-permitted.test", 0), 0u)
      << beyond.fault().detail;
  EXPECT_EQ(leaves.sample(now).failed, 1u);
  std::filesystem::remove_all(folder);
  const auto none = leaves.prepare(config);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.fault().detail.rfind("intercept.ca_dir: ", 0), 0u) << none.fault().detail;
}

class TheLeavesOfAShortLife : public TheLeaves {
 protected:
  TheLeavesOfAShortLife() : TheLeaves(hours(6)) {}
};

TEST_F(TheLeavesOfAShortLife, EndWithTheirAuthorityAndNotBefore) {
  const ListenerIdentity first = shown();
  ASSERT_NE(first, nullptr);
  leaves.renew(now + hours(5));
  EXPECT_EQ(shown(), first);
  leaves.renew(now + hours(7));
  EXPECT_EQ(shown(), nullptr) << "its clients get tunnels";
  EXPECT_TRUE(intercepts.leaf("https://api.test"));
  EXPECT_LT(*leaves.sample(now + hours(7)).authority_seconds, 0);
  EXPECT_EQ(leaves.sample(now + hours(7)).leaves, 0u);
}

TEST_F(TheLeavesOfAShortLife, HaveOneLineOfTheLogAboutTheirEnd) {
  const auto said_at = [this](hours time) {
    testing::internal::CaptureStderr();
    leaves.renew(now + time);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said_at(hours(7)).find("the authority has expired"), std::string::npos);
  EXPECT_EQ(said_at(hours(8)), "");
}

}  // namespace
}  // namespace carpool::proxy
