// Certificates of intercepted origins: signed with the configuration, and anew before they end.
#include "proxy/server/intercept_leaves.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

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
  ListenerIdentity shown() const { return intercepts.leaf("https://api.test").value_or(nullptr); }

  const std::string folder = testing::TempDir() + "carpool-leaves-" + std::to_string(::getpid());
  const InterceptLeaves::WallTime now = std::chrono::system_clock::now();
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
  EXPECT_EQ(sample.leaves, 1u);
  ASSERT_TRUE(sample.authority_seconds);
  EXPECT_NEAR(*sample.authority_seconds, 30 * 86'400, 600);
  EXPECT_EQ(leaves.sample(now + hours(60)).leaves, 0u) << "it has ended, and nobody renewed it";
  config.origins.front().intercept = false;
  read();
  EXPECT_FALSE(leaves.sample(now).authority_seconds);
  EXPECT_EQ(leaves.sample(now).minted, 2u) << "a counter";
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

}  // namespace
}  // namespace carpool::proxy
