// Unit tests of requests that wait for a connection while a reload changes their origin.
#include <gtest/gtest.h>

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using test::kGetRequest;
using test::MemoryWire;

config::Config with_protocols(std::vector<std::string> protocols) {
  config::Config settings;
  config::OriginSettings& origin = settings.origins.emplace_back();
  origin.origin = *pool::parse_origin("http://a.test");
  origin.upstream.protocols = std::move(protocols);
  return settings;
}

class AReload : public test::ExchangeFixture {
 protected:
  AReload() : ExchangeFixture(with_protocols({"h1"})) {}
  void reload(config::Config fresh) {
    exec::assume_on_loop();
    put_in_force(std::move(fresh));
    plane_.origins->apply_limits(plane_.now);
    plane_.router.forget();
    plane_.turn();
  }
  // The first step of a reload. The loops learn of it by the second one.
  void put_in_force(config::Config fresh) {
    exec::assume_on_loop();
    config::Config& next = configs_.emplace_back(std::move(fresh));
    auto prepared = plane_.origins->prepare(next);
    ASSERT_TRUE(prepared);
    EXPECT_TRUE(plane_.origins->apply(next, std::move(*prepared)).empty());
  }
  pool::ProtocolMask asked_for() { return plane_.environment.dials.front().reservation->kind(); }

 private:
  std::list<config::Config> configs_;  // the registry uses the last one
};

TEST_F(AReload, SendsARequestThatWaitedOnAConnectionUnderTheNewSettings) {
  MemoryWire& one = client();
  send(one, kGetRequest);
  ASSERT_EQ(1U, dials());
  reload(with_protocols({"h2"}));
  connect();
  EXPECT_TRUE(origin(0).outgoing.empty());
  EXPECT_EQ(1U, dials());
}

TEST_F(AReload, AsksNoOriginForAnUpgradeThatItsProtocolDoesNotHave) {
  MemoryWire& one = client();
  send(one, "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: marks\r\n\r\n");
  ASSERT_EQ(1U, dials());
  ASSERT_EQ(pool::ProtocolMask::h1_only, asked_for());
  reload(with_protocols({"h2"}));
  connect();
  ASSERT_EQ(1U, dials());
  EXPECT_EQ(pool::ProtocolMask::any, asked_for()) << "a connection for HTTP/1.1 would fail";
}

TEST_F(AReload, SendsARequestThatWaitsForABusyConnectionToTheNewPoolAtOnce) {
  const auto of_one = [](std::vector<std::string> protocols) {
    config::Config settings = with_protocols(std::move(protocols));
    settings.origins.front().pool.size = 1;
    return settings;
  };
  reload(of_one({"h1"}));
  asked();
  send(client(), kGetRequest);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(1U, snapshot().waiting);
  reload(of_one({"h2"}));
  EXPECT_EQ(1U, dials()) << "the new pool's first";
  EXPECT_EQ(1U, snapshot().waiting);
}

TEST_F(AReload, ClosesTheConnectionsOfTheEarlierPoolWhenTheyAreIdle) {
  asked();
  asked();
  plane_.from_origin(0, test::kEmpty);
  EXPECT_FALSE(origin(0).gone);
  reload(with_protocols({"h2"}));
  EXPECT_TRUE(origin(0).gone);
  EXPECT_FALSE(origin(1).gone) << "its request is still in progress";
  plane_.from_origin(1, test::kEmpty);
  EXPECT_TRUE(origin(1).gone);
}

TEST_F(AReload, SendsARequestWhoseConnectionIsOnItsWayOnNoConnectionOfTheEarlierPool) {
  send(client(), kGetRequest);
  MemoryWire& earlier = plane_.environment.connect();  // its grant is in flight
  reload(with_protocols({"h2"}));
  EXPECT_TRUE(earlier.outgoing.empty());
  EXPECT_EQ(1U, dials());
}

TEST_F(AReload, RepeatsARequestInTheNewPoolWhileTheEarlierOneStillLends) {
  asked_again();
  const pool::Destination* earlier = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->destination;
  put_in_force(with_protocols({"h2"}));
  plane_.from_origin(0, "", true);
  ASSERT_EQ(1U, dials());
  EXPECT_NE(plane_.environment.dials.front().destination, earlier);
}

TEST_F(AReload, HoldsTheNewPoolIfTheOriginAsksForAPauseOnAnEarlierConnection) {
  const auto cooling = [](std::vector<std::string> protocols) {
    config::Config settings = with_protocols(std::move(protocols));
    settings.origins.front().pool.cool_down = true;
    return settings;
  };
  reload(cooling({"h1"}));
  asked();
  reload(cooling({"h2"}));
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(snapshot().cooling_down);
  send(client(), kGetRequest);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(1U, snapshot().waiting);
}

}  // namespace
}  // namespace carpool::proxy
