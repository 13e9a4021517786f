// Unit tests of the health check's probe and responses that are not its own.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "proxy/upstream/health/health_check.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

config::Config probing() {
  config::Config settings;
  settings.pool.size = 1;
  settings.pool.health_check.interval = 1s;
  settings.pool.health_check.probe = "GET /up";
  return settings;
}

// An idle connection, whose probe is due within two seconds.
class AProbe : public test::ExchangeFixture {
 protected:
  AProbe() : ExchangeFixture(probing()) {
    exec::assume_on_loop();
    asked();
    plane_.from_origin(0, kEmpty);
    origin(0).outgoing.clear();
    check_.start();
  }
  ~AProbe() override {
    exec::assume_on_loop();
    check_.stop();
  }
  void fall_due() {
    for (int i = 0; i < 40; ++i) plane_.pass(50ms);
  }
  std::string closed() {
    std::string text;
    for (std::size_t i = 0; i < snapshot().closed.size(); ++i) {
      if (snapshot().closed[i] != 0) text.append(pool::name(static_cast<pool::CloseCause>(i))).append(" ");
    }
    return text;
  }

  HealthCheck check_{plane_.upstream};
};

TEST_F(AProbe, LeavesAConnectionThatRespondsInThePool) {
  fall_due();
  EXPECT_EQ(0U, origin(0).outgoing.find("GET /up")) << origin(0).outgoing;
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(1U, idle());
  EXPECT_EQ("", closed());
}

// No event has reported the bytes when the probe begins.
TEST_F(AProbe, IsNotSentBehindBytesThatNoRequestAskedFor) {
  origin(0).incoming = kEmpty;
  fall_due();
  EXPECT_TRUE(origin(0).gone);
  EXPECT_EQ("", origin(0).outgoing);
  EXPECT_EQ("peer_closed ", closed());
}

TEST_F(AProbe, TakesNoResponseThatCrossesItForItsOwn) {
  fall_due();
  test::MemoryWire& one = client();
  send(one, kGetRequest);
  EXPECT_EQ(1U, snapshot().waiting) << "the size is one";
  origin(0).unacked = origin(0).outgoing.size();
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(origin(0).gone) << "its own response would be the client's";
  EXPECT_EQ("peer_closed ", closed());
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
}

TEST_F(AProbe, TakesNoInterimResponseThatCrossesItForItsOwn) {
  fall_due();
  origin(0).unacked = origin(0).outgoing.size();
  plane_.from_origin(0, "HTTP/1.1 103 Early Hints\r\n\r\n");
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(AProbe, TakesAResponseForItsOwnOnceTheOriginHasAByteOfIt) {
  fall_due();
  origin(0).unacked = origin(0).outgoing.size() - 1;
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(1U, idle());
}

}  // namespace
}  // namespace carpool::proxy
