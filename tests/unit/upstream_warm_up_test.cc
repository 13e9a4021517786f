// Unit tests of WarmUp and the dialer, on virtual time.
#include "proxy/upstream/warm_up.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/config/in_force.h"
#include "proxy/upstream/origin/tls_identity.h"
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

class AWarmUp : public ::testing::Test, private WarmUp::Host, private WarmUpListener {
 protected:
  explicit AWarmUp(std::uint32_t connections = 3) : AWarmUp(with_warm_up(connections)) {}
  explicit AWarmUp(const config::Config& settings)
      : plane_(settings),
        in_force_(plane_.settings),
        warm_up_(plane_.loop, *plane_.origins, in_force_, static_cast<WarmUp::Host&>(*this)) {
    plane_.environment.warm_up = this;
  }
  // The registry refers to the configuration in force until the plane ends.
  ~AWarmUp() override { replaced_.push_back(in_force_.replace(std::make_unique<config::Config>())); }
  void start() {
    exec::assume_on_loop();
    warm_up_.start();
    plane_.turn();
  }
  void dialed(const Fault* fault = nullptr) {
    exec::assume_on_loop();
    auto& dial = plane_.environment.dials.front();
    pool::Destination& destination = *dial.destination;
    const std::uint64_t number = dial.warm_up;
    if (fault == nullptr) {
      plane_.environment.connect();
    } else {
      const auto reservation = std::move(dial.reservation);
      plane_.environment.dials.pop_front();
      destination.dial_failed(std::move(*reservation), *fault, plane_.now);
    }
    on_warm_dial_ended(number, fault);
    plane_.turn();
  }
  // The last dial that began is the next to end.
  void prefer_last() { std::swap(plane_.environment.dials.front(), plane_.environment.dials.back()); }
  std::uint64_t begin(std::uint32_t open) {
    exec::assume_on_loop();
    return warm_up_.begin(*pool::parse_origin("http://warm.test"), open);
  }
  void reload(const config::Config& wanted) {
    exec::assume_on_loop();
    auto fresh = std::make_unique<config::Config>(wanted);
    config::Config& settings = *fresh;
    auto prepared = plane_.origins->prepare(settings);
    ASSERT_TRUE(prepared);
    EXPECT_TRUE(plane_.origins->apply(settings, std::move(*prepared)).empty());
    replaced_.push_back(in_force_.replace(std::move(fresh)));
  }
  void on_warm() override { ++logged_; }
  std::uint64_t on_warm_dial_begun() override LOOP_ONLY { return warm_up_.dial_begun(); }
  void on_warm_dial_ended(std::uint64_t attempt, const Fault* fault) override LOOP_ONLY {
    warm_up_.dial_ended(attempt, fault);
  }
  const Fault refused_{FaultKind::connect_refused, Side::upstream, "refused"};

  std::vector<std::unique_ptr<const config::Config>> replaced_;
  test::DataPlane plane_;
  ConfigInForce in_force_;
  WarmUp warm_up_;
  int logged_ = 0;
};

class NoWarmUp : public AWarmUp {
 protected:
  NoWarmUp() : AWarmUp(0) {}
};

config::Config with_min_idle(std::uint32_t connections) {
  config::Config config = with_warm_up(0);
  config.origins.front().pool.min_idle = connections;
  return config;
}
class AWarmUpOfMinIdle : public AWarmUp {
 protected:
  AWarmUpOfMinIdle() : AWarmUp(with_min_idle(2)) {}
};

TEST_F(AWarmUpOfMinIdle, OpensAsManyThoughNoneIsConfigured) {
  start();
  EXPECT_EQ(0, logged_);
  ASSERT_EQ(1U, plane_.environment.dials.size());
  dialed();
  ASSERT_EQ(1U, plane_.environment.dials.size());
  dialed();
  EXPECT_EQ(1, logged_);
}

TEST_F(NoWarmUp, IsOverAtOnce) {
  start();
  EXPECT_EQ(1, logged_);
}

TEST_F(AWarmUp, DialsOnceAloneAndThenWhatIsMissing) {
  start();
  EXPECT_EQ(1U, plane_.environment.dials.size());
  EXPECT_EQ(0, logged_);
  dialed();
  EXPECT_EQ(2U, plane_.environment.dials.size());
  dialed();
  dialed();
  EXPECT_EQ(1, logged_);
  EXPECT_TRUE(warm_up_.failed().empty());
}

TEST_F(AWarmUp, OfAnOriginThatRefusesCostsOneDialAndIsTriedAgainLater) {
  start();
  dialed(&refused_);
  EXPECT_EQ(1, logged_);
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: refused"}, warm_up_.failed());
  EXPECT_TRUE(plane_.environment.dials.empty());
  plane_.pass(2s);
  EXPECT_EQ(1U, plane_.environment.dials.size());
}

TEST_F(AWarmUp, OfAPausedOriginHasFailedAndIsTriedAgainAfterThePause) {
  pool::Destination& paused = *(*plane_.origins->at(*pool::parse_origin("http://warm.test")))->destination;
  paused.pause(plane_.now);
  start();
  EXPECT_TRUE(plane_.environment.dials.empty());
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: paused by an operator"}, warm_up_.failed());
  paused.resume(plane_.now);
  plane_.pass(2s);
  EXPECT_EQ(1U, plane_.environment.dials.size());
}

TEST_F(AWarmUp, ThatFailedEndsWithItsOrigin) {
  start();
  dialed(&refused_);
  exec::assume_on_loop();
  reload({});
  const std::vector<pool::Destination*> retired = plane_.origins->retire_idle(Clock::now() + 1h, 1min);
  ASSERT_EQ(1U, retired.size());
  ASSERT_TRUE(plane_.origins->destroy(retired));
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: refused"}, warm_up_.failed()) << "until the next sweep";
  plane_.pass(2s);
  EXPECT_TRUE(plane_.environment.dials.empty());
  EXPECT_TRUE(warm_up_.failed().empty());
  EXPECT_EQ(0U, plane_.origins->directory().size()) << "no pool was created for another try";
}

TEST_F(AWarmUp, ThatFailedFollowsAReload) {
  start();
  dialed(&refused_);
  reload(with_warm_up(1));
  plane_.pass(2s);
  ASSERT_EQ(1U, plane_.environment.dials.size());
  dialed();
  EXPECT_TRUE(plane_.environment.dials.empty()) << "one is wanted now";
  EXPECT_TRUE(warm_up_.failed().empty());
}

TEST_F(AWarmUp, IsNotEndedByADialOfAnEarlierTry) {
  start();
  plane_.pass(plane_.settings.pool.connect_timeout);
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: connect_timeout passed"}, warm_up_.failed());
  plane_.pass(1s);
  ASSERT_EQ(2U, plane_.environment.dials.size()) << "the first one still runs";
  dialed(&refused_);
  EXPECT_EQ(std::vector<std::string>{"http://warm.test: trying again"}, warm_up_.failed());
  dialed();
  EXPECT_FALSE(plane_.environment.dials.empty()) << "what is missing follows";
}

TEST_F(NoWarmUp, EndsWithItsOwnDialsBesideAnotherOne) {
  const std::uint64_t first = begin(1), second = begin(2);
  ASSERT_EQ(2U, plane_.environment.dials.size());
  prefer_last();
  dialed();
  const std::optional<WarmUpResult> result = warm_up_.result(second);
  ASSERT_TRUE(result);
  EXPECT_EQ(1U, result->made);
  EXPECT_FALSE(result->failure);
  EXPECT_FALSE(warm_up_.result(first)) << "its dial still runs";
  dialed(&refused_);
  ASSERT_TRUE(warm_up_.result(first));
  EXPECT_EQ("refused", warm_up_.result(first)->failure);
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

TEST(ADialer, FindsEachDialAmongThoseOfManyOrigins) {
  exec::assume_on_loop();
  config::Config config;
  config.pool.connect_rate = 1;
  config.pool.connect_burst = 1;
  test::DataPlane plane(config);
  struct Made {
    OriginRuntime* origin;
    std::uint32_t index, generation;
  };
  std::vector<Made> all;
  for (unsigned n = 0; n < 20; ++n) {
    OriginRuntime& origin = **plane.origins->at(*pool::parse_origin("http://127.0.0.1:" + std::to_string(9 + n)));
    ASSERT_TRUE(origin.connects.delay_until_allowed(plane.now, 10s));
    ASSERT_EQ(5U, origin.destination->warm_up(5, 5, plane.now));
    while (!plane.environment.dials.empty()) {
      auto reservation = std::move(plane.environment.dials.front().reservation);
      plane.environment.dials.pop_front();
      all.push_back({&origin, reservation->index(), reservation->generation()});
      plane.dialer.dial(*origin.destination, origin, std::move(*reservation));
    }
  }
  for (std::size_t n = 0; n < all.size(); ++n) {
    const Made& one = all[n * 37 % all.size()];  // 37 and 100 have no common factor: each of them once
    EXPECT_NE("", plane.dialer.phase_of(*one.origin));
    const auto before = one.origin->dials.load();
    plane.dialer.cancel_dial(*one.origin->destination, one.index, one.generation + 1);
    EXPECT_EQ(one.origin->dials.load(), before) << "another dial has this entry";
    plane.dialer.cancel_dial(*one.origin->destination, one.index, one.generation);
    EXPECT_EQ(one.origin->dials.load(), before - 1);
    EXPECT_EQ(plane.dialer.phase_of(*one.origin).empty(), before == 1);
  }
}

// The data plane accepts no tasks: the message that the certificates are not loaded is posted at once.
TEST(ADialer, CancelsADialWhoseCertificatesAreReportedButNotYetDelivered) {
  exec::assume_on_loop();
  test::DataPlane plane;
  OriginRuntime& origin = **plane.origins->at(*pool::parse_origin("https://127.0.0.1:9"));
  pool::Destination& destination = *origin.destination;
  ASSERT_EQ(1U, destination.warm_up(1, 1, plane.now));
  auto reservation = std::move(plane.environment.dials.front().reservation);
  plane.environment.dials.pop_front();
  const std::uint32_t index = reservation->index(), generation = reservation->generation();
  plane.dialer.dial(destination, origin, std::move(*reservation));
  EXPECT_EQ("loading certificates", plane.dialer.phase_of(origin));
  plane.dialer.cancel_dial(destination, index, generation);
  EXPECT_EQ("", plane.dialer.phase_of(origin));
  plane.turn();
  EXPECT_FALSE(origin.dialing());
}

TEST(ADialer, ReportsCertificatesThatFailedEarlierOnlyAfterItsCall) {
  exec::assume_on_loop();
  tls::ClientSettings settings;
  settings.ca_file = "/nonexistent";
  TlsIdentity broken(settings);
  ASSERT_FALSE(broken.load());
  test::DataPlane plane;
  OriginRuntime& origin = **plane.origins->at(*pool::parse_origin("https://127.0.0.1:9"));
  origin.tls = &broken;
  pool::Destination& destination = *origin.destination;
  ASSERT_EQ(1U, destination.warm_up(1, 1, plane.now));
  auto reservation = std::move(plane.environment.dials.front().reservation);
  plane.environment.dials.pop_front();
  plane.dialer.dial(destination, origin, std::move(*reservation));
  EXPECT_TRUE(origin.dialing());
  EXPECT_EQ("loading certificates", plane.dialer.phase_of(origin));
  plane.turn();
  EXPECT_FALSE(origin.dialing());
}

}  // namespace
}  // namespace carpool::proxy
