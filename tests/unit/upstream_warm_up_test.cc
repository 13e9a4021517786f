// Unit tests of WarmUp and the dialer, on virtual time.
#include "proxy/upstream/warm_up.h"

#include <gtest/gtest.h>

#include "proxy/config/in_force.h"
#include "tests/unit/data_plane.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

config::Config with_warm_up(std::uint32_t connections) {
  config::Config config;
  config::OriginSettings one;
  one.origin = *pool::parse_origin("http://warm.test");
  one.pool.warm_up.enabled = connections != 0;
  one.pool.warm_up.size = connections;
  config.origins.push_back(one);
  return config;
}

class AWarmUp : public ::testing::Test, private WarmUp::Host {
 protected:
  explicit AWarmUp(std::uint32_t connections = 3)
      : plane_(with_warm_up(connections)),
        in_force_(plane_.settings),
        warm_up_(plane_.loop, *plane_.origins, in_force_, static_cast<WarmUp::Host&>(*this)) {}
  void start() {
    exec::assume_on_loop();
    warm_up_.start();
    plane_.turn();
  }
  void dialed(const Fault* fault = nullptr) {
    exec::assume_on_loop();
    auto& dial = plane_.environment.dials.front();
    pool::Destination& destination = *dial.destination;
    if (fault == nullptr) {
      plane_.environment.connect();
    } else {
      const auto reservation = std::move(dial.reservation);
      plane_.environment.dials.pop_front();
      destination.dial_failed(std::move(*reservation), *fault, plane_.now);
    }
    warm_up_.dial_ended(destination, fault);
    plane_.turn();
  }
  void on_warm() override { ++told_; }

  test::DataPlane plane_;
  ConfigInForce in_force_;
  WarmUp warm_up_;
  int told_ = 0;
};

class NoWarmUp : public AWarmUp {
 protected:
  NoWarmUp() : AWarmUp(0) {}
};

TEST_F(NoWarmUp, IsOverAtOnce) {
  start();
  EXPECT_EQ(1, told_);
}

TEST_F(AWarmUp, DialsOnceAloneAndThenWhatIsMissing) {
  start();
  EXPECT_EQ(1U, plane_.environment.dials.size());
  EXPECT_EQ(0, told_);
  dialed();
  EXPECT_EQ(2U, plane_.environment.dials.size());
  dialed();
  dialed();
  EXPECT_EQ(1, told_);
  EXPECT_TRUE(warm_up_.failed().empty());
}

TEST_F(AWarmUp, OfAnOriginThatRefusesCostsOneDialAndIsTriedAgainLater) {
  start();
  const Fault refused{FaultKind::connect_refused, Side::upstream, "refused"};
  dialed(&refused);
  EXPECT_EQ(1, told_);
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: refused"}, warm_up_.failed());
  EXPECT_TRUE(plane_.environment.dials.empty());
  plane_.pass(2s);
  EXPECT_EQ(1U, plane_.environment.dials.size());
}

TEST(ADialer, NamesNoPhaseWithoutADial) {
  exec::assume_on_loop();
  test::DataPlane plane;
  const OriginRuntime& origin = **plane.origins->at(*pool::parse_origin("http://a.test"));
  EXPECT_EQ("", plane.dialer.phase_of(origin));
}

TEST(ADialer, KeepsADialThatIsOverTheRateWaitingAndCancelsIt) {
  exec::assume_on_loop();
  config::Config config;
  config.pool.connect_rate = 1;
  config.pool.connect_burst = 1;
  test::DataPlane plane(config);
  OriginRuntime& origin = **plane.origins->at(*pool::parse_origin("http://127.0.0.1:9"));
  pool::Destination& destination = *origin.destination;
  ASSERT_EQ(2U, destination.warm_up(2, 2, plane.now));
  const std::optional<Duration> first = origin.connects.delay_until_allowed(plane.now, 10s);
  ASSERT_TRUE(first);
  auto reservation = std::move(plane.environment.dials.front().reservation);
  plane.environment.dials.pop_front();
  plane.dialer.dial(destination, origin, std::move(*reservation));
  EXPECT_EQ("rate limited (pool.connect_rate)", plane.dialer.phase_of(origin));
  plane.dialer.cancel_all();
  EXPECT_EQ("", plane.dialer.phase_of(origin));
  EXPECT_FALSE(origin.dialing());
}

}  // namespace
}  // namespace carpool::proxy
