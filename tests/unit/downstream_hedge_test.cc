// Unit tests of request.hedge: a late attempt goes on beside the next one, and the client gets one response.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

constexpr std::string_view kFirst = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst";
constexpr std::string_view kSecond = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond";
constexpr std::string_view kUnavailable = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

config::Config hedged(std::uint32_t size = 100) {
  config::Config settings;
  settings.request.per_try_timeout = 2s;
  settings.request.hedge = true;
  settings.request.max_retries = 2;
  settings.request.retry_on = {"503", "reset", "connect-failure"};
  settings.pool.size = size;
  return settings;
}

class AHedgedRequest : public test::ExchangeFixture {
 protected:
  explicit AHedgedRequest(config::Config settings = hedged()) : ExchangeFixture(std::move(settings)) {}
  // A client whose first attempt is late and whose second one was sent.
  test::MemoryWire& hedged_client() {
    test::MemoryWire& one = asked();
    plane_.pass(3s);
    EXPECT_EQ(1U, dials());
    if (dials() != 0) connect();
    EXPECT_EQ(0U, origin(1).outgoing.find("GET /1 HTTP/1.1")) << origin(1).outgoing;
    EXPECT_FALSE(origin(0).gone) << "the late attempt goes on";
    return one;
  }
  std::uint64_t ended(metrics::Hedge result) {
    std::uint64_t sum = 0;
    const metrics::OriginSlot slot = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->slot;
    plane_.registry.visit_origin(slot, [&](const std::string& /*label*/, const metrics::OriginShard& shard) {
      sum += shard.hedges[static_cast<std::size_t>(result)].read();
    });
    return sum;
  }
  std::string retries() {
    std::string text;
    const metrics::OriginSlot slot = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->slot;
    plane_.registry.visit_origin(slot, [&](const std::string& /*label*/, const metrics::OriginShard& shard) {
      for (std::size_t i = 0; i < metrics::kRetryReasons.size(); ++i) {
        if (const std::uint64_t count = shard.retries[i].read())
          text.append(metrics::kRetryReasons[i]).append("=").append(std::to_string(count)).append(" ");
      }
    });
    return text;
  }
  void expect_nothing_left() {
    EXPECT_EQ(0U, snapshot().waiting);
    EXPECT_EQ(0U, snapshot().connections[static_cast<std::size_t>(pool::ConnectionStatus::borrowed)]);
  }
};

TEST_F(AHedgedRequest, GetsTheSecondResponseIfItIsTheFirstToBegin) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
  EXPECT_TRUE(origin(0).gone) << "a response to nobody would follow on it";
  EXPECT_EQ(1U, idle()) << "the connection of the response serves the next request";
  EXPECT_EQ(1U, ended(metrics::Hedge::won));
  expect_nothing_left();
}

TEST_F(AHedgedRequest, GetsTheLateResponseIfItIsTheFirstToBegin) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, kFirst);
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  EXPECT_TRUE(origin(1).gone);
  EXPECT_EQ(1U, idle());
  EXPECT_EQ(1U, ended(metrics::Hedge::lost));
  expect_nothing_left();
}

TEST_F(AHedgedRequest, KeepsTheAttemptWhoseResponseBeganAndCancelsTheOtherAtOnce) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsec");
  EXPECT_TRUE(origin(0).gone);
  plane_.from_origin(1, "ond");
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
}

TEST_F(AHedgedRequest, CancelsTheSecondAttemptAtOnceWhenTheLateResponseBegins) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfi");
  EXPECT_TRUE(origin(1).gone);
  EXPECT_EQ(1U, ended(metrics::Hedge::lost));
  plane_.from_origin(0, "rst");
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequest, EndsASecondAttemptWhoseConnectionHasAnInterimHeadFromBeforeTheRequest) {
  test::MemoryWire& one = asked();
  asked();
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}}) {
    plane_.from_origin(n, kEmpty);
    origin(n).outgoing.clear();
  }
  one.outgoing.clear();
  send(one, kGetRequest);
  const std::size_t first = origin(0).outgoing.empty() ? 1 : 0;
  const std::size_t second = 1 - first;
  plane_.pass(3s);
  ASSERT_NE("", origin(second).outgoing);
  origin(second).unacked = origin(second).outgoing.size();
  plane_.from_origin(second, "HTTP/1.1 103 Early Hints\r\n\r\n");
  EXPECT_TRUE(origin(second).gone);
  EXPECT_EQ(1U, ended(metrics::Hedge::failed));
  plane_.from_origin(first, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequest, GetsOneResponseWhenTheNextRequestFollowsOnItsConnections) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, kSecond);
  one.outgoing.clear();
  send(one, kGetRequest);
  EXPECT_EQ(0U, dials()) << "the connection of the second attempt";
  plane_.from_origin(1, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  EXPECT_EQ(1U, idle());
}

TEST_F(AHedgedRequest, IsFollowedByOneThatIsHedgedToo) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, kSecond);
  one.outgoing.clear();
  send(one, kGetRequest);
  plane_.pass(3s);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(2, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  EXPECT_TRUE(origin(1).gone);
  EXPECT_EQ(2U, ended(metrics::Hedge::won));
  expect_nothing_left();
}

config::Config hedged_once() {
  config::Config settings = hedged();
  settings.request.max_retries = 1;
  return settings;
}
class ARequestHedgedForItsLastRetry : public AHedgedRequest {
 protected:
  ARequestHedgedForItsLastRetry() : AHedgedRequest(hedged_once()) {}
};

TEST_F(ARequestHedgedForItsLastRetry, GoesOnWithTheSecondAttemptWhenTheFirstGetsTheLastResponseOfAnIdleConnection) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, kSecond);
  one.outgoing.clear();
  send(one, kGetRequest);
  plane_.pass(3s);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, "HTTP/1.1 408 Goodbye\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ("", one.outgoing);
  plane_.from_origin(2, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(ARequestHedgedForItsLastRetry, GivesTheSecondAttemptTimeFromTheEndOfTheFirstOn) {
  test::MemoryWire& one = hedged_client();
  plane_.pass(10s);  // several times request.per_try_timeout
  plane_.from_origin(0, "", true);
  plane_.pass(1s);
  EXPECT_EQ("", one.outgoing);
  EXPECT_FALSE(origin(1).gone);
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
}

TEST_F(ARequestHedgedForItsLastRetry, LimitsThisTimeToo) {
  test::MemoryWire& one = hedged_client();
  plane_.pass(10s);
  plane_.from_origin(0, "", true);
  plane_.pass(3s);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 504")) << one.outgoing;
  EXPECT_TRUE(origin(1).gone);
}

TEST_F(ARequestHedgedForItsLastRetry, GetsTheSecondResponseAlsoIfTheFirstIsLateForGood) {
  test::MemoryWire& one = hedged_client();
  plane_.pass(58s);  // request.response_header_timeout of the first one
  EXPECT_TRUE(origin(0).gone);
  plane_.pass(1s);
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
}

TEST_F(AHedgedRequest, GoesOnWithTheSecondAttemptWhenTheFirstIsLateForGood) {
  test::MemoryWire& one = hedged_client();
  plane_.pass(58s);  // request.response_header_timeout of the first one
  EXPECT_TRUE(origin(0).gone);
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
}

TEST_F(AHedgedRequest, IsNoUpgrade) {
  asked("GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: marks\r\n\r\n");
  plane_.pass(3s);
  EXPECT_TRUE(origin(0).gone) << "sent again, as without request.hedge";
}

TEST_F(AHedgedRequest, GoesOnWithTheSecondAttemptIfTheConnectionOfTheFirstEnds) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, "", true);
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  EXPECT_EQ(0U, dials()) << "no third attempt begins";
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
}

TEST_F(AHedgedRequest, IsRetriedAsAnyOtherWhenBothConnectionsEnd) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, "", true);
  plane_.from_origin(1, "", true);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(2, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  EXPECT_EQ(retries(), "reset=1 per_try_timeout=1 ");
  EXPECT_EQ(1U, ended(metrics::Hedge::failed)) << "its second attempt took the place of the first and got no response";
  EXPECT_EQ(0U, ended(metrics::Hedge::won));
  expect_nothing_left();
}

TEST_F(AHedgedRequest, GoesOnWithTheFirstAttemptIfTheConnectionOfTheSecondEnds) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, "", true);
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  EXPECT_EQ(1U, ended(metrics::Hedge::failed));
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  expect_nothing_left();
}

TEST_F(AHedgedRequest, GoesOnWithTheFirstAttemptIfTheSecondGetsNoConnection) {
  test::MemoryWire& one = asked();
  plane_.pass(3s);
  fail_dial();
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequest, IsHedgedAgainWhenTheSecondAttemptFailedAndTheFirstIsLateAgain) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, "", true);
  plane_.pass(1s);
  EXPECT_EQ(0U, dials());
  plane_.pass(1s);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(2, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(AHedgedRequest, HasNoMoreThanTwoAttemptsAtATime) {
  hedged_client();
  plane_.pass(10s);
  EXPECT_EQ(0U, dials());
  EXPECT_FALSE(origin(0).gone || origin(1).gone);
}

TEST_F(AHedgedRequest, UsesNoResponseThatWouldBeRetriedWhileTheOtherAttemptGoesOn) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, kUnavailable);
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  expect_nothing_left();
}

TEST_F(AHedgedRequest, LeavesTheFirstResponseForTheSecondAttemptIfItWouldBeRetried) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, kUnavailable);
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  EXPECT_EQ(0U, dials());
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
  expect_nothing_left();
}

TEST_F(AHedgedRequest, PassesNoInterimResponseOnThatMayLose) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, "HTTP/1.1 103 Early Hints\r\nLink: </second>\r\n\r\n");
  EXPECT_TRUE(one.outgoing.empty()) << one.outgoing;
  plane_.from_origin(0, "HTTP/1.1 103 Early Hints\r\nLink: </first>\r\n\r\n");
  EXPECT_TRUE(has(one.outgoing, "</first>")) << one.outgoing;
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
}

TEST_F(AHedgedRequest, EndsAnAttemptThatSwitchesProtocolsUnasked) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(1, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: marks\r\n\r\n");
  EXPECT_TRUE(one.outgoing.empty() && origin(1).gone) << one.outgoing;
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequest, EndsAnAttemptWithoutEndOfItsInterimResponses) {
  test::MemoryWire& one = hedged_client();
  std::string many;
  for (int n = 0; n < 100; ++n) many += "HTTP/1.1 103 Early Hints\r\n\r\n";
  plane_.from_origin(1, many);
  EXPECT_TRUE(one.outgoing.empty() && origin(1).gone) << one.outgoing;
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequest, EndsBothAttemptsWhenItsClientLeaves) {
  test::MemoryWire& one = hedged_client();
  send(one, "", true);
  plane_.pass(60s);
  EXPECT_TRUE(origin(0).gone && origin(1).gone);
  EXPECT_EQ(1U, ended(metrics::Hedge::lost));
  expect_nothing_left();
}

TEST_F(AHedgedRequest, HasNotWonWhenItsClientLeavesTheAttemptThatIsLeft) {
  test::MemoryWire& one = hedged_client();
  plane_.from_origin(0, "", true);
  send(one, "", true);
  plane_.pass(60s);
  EXPECT_EQ(1U, ended(metrics::Hedge::lost));
  EXPECT_EQ(0U, ended(metrics::Hedge::won));
  expect_nothing_left();
}

TEST_F(AHedgedRequest, EndsBothAttemptsWhenNoneIsAnswered) {
  test::MemoryWire& one = hedged_client();
  for (int n = 0; n < 20 && one.outgoing.empty(); ++n) {
    plane_.pass(20s);
    if (dials() != 0) connect();
  }
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 504")) << one.outgoing;
  EXPECT_EQ(3U, plane_.environment.wires.size()) << "max_retries = 2";
  EXPECT_TRUE(origin(0).gone && origin(1).gone);
  expect_nothing_left();
}

class AHedgedRequestAtTheCap : public AHedgedRequest {
 protected:
  AHedgedRequestAtTheCap() : AHedgedRequest(hedged(1)) {}
};

TEST_F(AHedgedRequestAtTheCap, LeavesTheQueueWhenItsLateResponseBegins) {
  test::MemoryWire& one = asked();
  plane_.pass(3s);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(1U, snapshot().waiting);
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  expect_nothing_left();
}

TEST_F(AHedgedRequestAtTheCap, IsSentAgainWhenItsFirstConnectionEndsWhileTheSecondAttemptWaits) {
  test::MemoryWire& one = asked();
  plane_.pass(3s);
  ASSERT_EQ(1U, snapshot().waiting);
  plane_.from_origin(0, "", true);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kSecond);
  EXPECT_TRUE(one.outgoing.ends_with("second")) << one.outgoing;
  EXPECT_EQ(retries(), "per_try_timeout=1 ") << "that it was late is the only reason";
  expect_nothing_left();
}

TEST_F(AHedgedRequestAtTheCap, SendsNoSecondAttemptOnceAReloadGaveTheOriginAnotherPool) {
  OriginRuntime& runtime = **plane_.origins->at(*pool::parse_origin("http://a.test"));
  test::MemoryWire& one = asked();
  plane_.pass(3s);
  ASSERT_EQ(1U, snapshot().waiting);
  runtime.replaced = true;
  pool::Limits larger;
  larger.size = 2;
  runtime.destination->set_limits(larger, plane_.now);
  ASSERT_EQ(1U, dials());
  EXPECT_EQ("", connect().outgoing);
  runtime.replaced = false;
  plane_.from_origin(0, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
  expect_nothing_left();
}

TEST_F(AHedgedRequest, TakesNoIdleConnectionOnceAReloadGaveTheOriginAnotherPool) {
  OriginRuntime& runtime = **plane_.origins->at(*pool::parse_origin("http://a.test"));
  asked();
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kFirst);
  origin(0).outgoing.clear();
  runtime.replaced = true;
  plane_.pass(3s);
  EXPECT_EQ("", origin(0).outgoing);
  EXPECT_EQ(0U, dials());
  runtime.replaced = false;
  plane_.from_origin(1, kFirst);
  EXPECT_TRUE(one.outgoing.ends_with("first")) << one.outgoing;
}

TEST_F(AHedgedRequestAtTheCap, LeavesTheQueueWhenItsClientLeaves) {
  test::MemoryWire& one = asked();
  plane_.pass(3s);
  ASSERT_EQ(1U, snapshot().waiting);
  send(one, "", true);
  plane_.pass(60s);
  expect_nothing_left();
}

class ARequestThatMayNotBeSentTwice : public AHedgedRequest {};

TEST_F(ARequestThatMayNotBeSentTwice, IsNotHedged) {
  for (const std::string_view head : {"POST http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n",
                                      "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx"}) {
    test::MemoryWire& one = asked(head);
    plane_.pass(3s);
    EXPECT_EQ(0U, dials()) << head;
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 504")) << one.outgoing;
  }
}

TEST_F(ARequestThatMayNotBeSentTwice, IsNotHedgedIfItAuthenticatesItsConnection) {
  asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: Negotiate abc\r\n\r\n");
  plane_.pass(3s);
  EXPECT_TRUE(origin(0).gone) << "sent again, as without request.hedge";
}

}  // namespace
}  // namespace carpool::proxy
