// Unit tests of retries that an operator asks for: request.retry_on and request.per_try_timeout.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/access_log_file.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

constexpr std::string_view kBusy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";

class ARetry : public test::ExchangeFixture {
 protected:
  explicit ARetry(config::Config settings = {}) : ExchangeFixture(std::move(settings)) {}
  // A client whose only connection to the origin authenticated it.
  test::MemoryWire& authenticated() {
    test::MemoryWire& one =
        asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: Negotiate abc\r\n\r\n");
    plane_.from_origin(0, "HTTP/1.1 401 No\r\nWWW-Authenticate: Negotiate def\r\nContent-Length: 0\r\n\r\n");
    one.outgoing.clear();
    send(one, kGetRequest);
    EXPECT_EQ(0U, dials()) << "the client keeps its connection";
    return one;
  }
};

class WithoutConditions : public ARetry {};

TEST_F(WithoutConditions, NothingIsSentAgainAfterANewConnectionEnds) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "", true);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
}

config::Config with(auto&& change) {
  config::Config settings;
  change(settings);
  return settings;
}

class AfterReset : public ARetry {
 protected:
  AfterReset() : ARetry(with([](config::Config& c) { c.request.retry_on = {"reset"}; })) {}
};

TEST_F(AfterReset, ARequestIsSentAgainOnANewConnection) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "", true);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
}

class AfterAStatus : public ARetry {
 protected:
  AfterAStatus()
      : ARetry(with([](config::Config& c) {
          c.request.retry_on = {"503"};
          c.pool.cool_down = true;
        })) {}
};

TEST_F(AfterAStatus, ARequestIsSentAgainOnTheSameConnection) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kBusy);
  EXPECT_EQ(0U, dials());
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_EQ(2U, snapshot().borrows);
}

TEST_F(AfterAStatus, TheEndOfADroppedResponseComesBeforeTheRequestIsSentAgain) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbu");
  EXPECT_EQ(1U, snapshot().borrows);
  plane_.from_origin(0, "sy");
  EXPECT_EQ(2U, snapshot().borrows);
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_EQ(std::string::npos, one.outgoing.find("busy")) << one.outgoing;
}

TEST_F(AfterAStatus, ADroppedResponseThatNeverEndsDelaysTheRetryAndDoesNotPreventIt) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbu");
  plane_.pass(60s);
  EXPECT_TRUE(origin(0).gone);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
}

TEST_F(AfterAStatus, ADroppedResponseThatBreaksOffOrIsLongIsNotAwaited) {
  for (const std::string rest : {"Content-Length: 4\r\n\r\nbu", "Content-Length: 16385\r\n\r\n"}) {
    const bool ends = rest.ends_with("bu");
    const std::size_t wires = plane_.environment.wires.size();
    test::MemoryWire& one = asked();
    plane_.from_origin(wires, "HTTP/1.1 503 Busy\r\n" + rest, ends);
    ASSERT_EQ(1U, dials());
    connect();
    plane_.from_origin(wires + 1, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  }
}

TEST_F(AfterAStatus, AClientOfAnAuthenticatedConnectionGetsTheStatus) {
  test::MemoryWire& one = authenticated();
  plane_.from_origin(0, kBusy);
  EXPECT_EQ(0U, dials()) << "another connection has not authenticated the client";
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503")) << one.outgoing;
}

TEST_F(WithoutConditions, AClientOfAnAuthenticatedConnectionGets421AndKeepsItsConnection) {
  test::MemoryWire& one = authenticated();
  plane_.from_origin(0, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(0U, dials()) << "another connection has not authenticated the client";
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 421")) << one.outgoing;
  one.outgoing.clear();
  send(one, kGetRequest);
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
}

TEST_F(AfterAStatus, ARequestThatAuthenticatesItsConnectionIsNotSentAgainAndNoOtherClientGetsTheConnection) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: Negotiate abc\r\n\r\n");
  plane_.from_origin(0, kBusy);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503")) << one.outgoing;
  EXPECT_EQ(0U, idle());
  send(client(), kGetRequest);
  EXPECT_EQ(1U, dials());
}

TEST_F(AfterAStatus, AnOriginThatAuthenticatesAConnectionInADroppedResponseIsNotAskedByOthersOverIt) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nWWW-Authenticate: Negotiate def\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503")) << one.outgoing;
  EXPECT_EQ(0U, idle());
}

TEST_F(AfterAStatus, AnOriginThatNamesAPauseIsNotAskedWithinIt) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503")) << "the client learns the time itself: " << one.outgoing;
  EXPECT_EQ(0U, snapshot().waiting);
}

TEST_F(AfterAStatus, APauseUntilADateCountsFromTheWallClockIfTheResponseHasNoDateItself) {
  asked();
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:46 GMT\r\nContent-Length: 0\r\n\r\n");
  const pool::Destination& destination = *(*plane_.origins->at(*pool::parse_origin("http://a.test")))->destination;
  EXPECT_EQ(destination.cooling(plane_.now), 9s);
}

TEST_F(AfterAStatus, AfterAPauseOneRequestGoesAheadAndItsResponseLetsTheOthersGo) {
  asked();
  plane_.from_origin(0, "HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
  test::MemoryWire& first = client();
  send(first, kGetRequest);
  send(client(), kGetRequest);
  EXPECT_EQ(2U, snapshot().waiting);
  plane_.pass(1s);
  (*plane_.origins->at(*pool::parse_origin("http://a.test")))->destination->wake(plane_.now);
  plane_.turn();
  EXPECT_EQ(1U, snapshot().waiting);
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, first.outgoing.find("HTTP/1.1 200")) << first.outgoing;
  EXPECT_EQ(0U, snapshot().waiting);
}

// The answer to the request that went ahead counts as soon as its head is here.
TEST_F(AfterAStatus, TheHeadOfTheFirstAnswerAfterAPauseEndsItForAllAtOnce) {
  asked();
  send(client(), kGetRequest);
  connect();
  plane_.from_origin(1, kEmpty);
  ASSERT_EQ(1U, idle());
  plane_.from_origin(0, "HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n");
  for (int n = 0; n < 3; ++n) send(client(), kGetRequest);
  EXPECT_EQ(3U, snapshot().waiting);
  origin(0).outgoing.clear();
  origin(1).outgoing.clear();
  pool::Destination& destination = *(*plane_.origins->at(*pool::parse_origin("http://a.test")))->destination;
  plane_.pass(1s);
  destination.wake(plane_.now);
  plane_.turn();
  ASSERT_EQ(2U, snapshot().waiting);
  const std::size_t asked_first = origin(0).outgoing.empty() ? 1 : 0;
  plane_.from_origin(asked_first, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  EXPECT_FALSE(destination.cooling(plane_.now));
  EXPECT_EQ(1U, snapshot().waiting) << "the other connection serves the next one, though no answer is complete";
  EXPECT_EQ(1U, dials()) << "and one is dialed for the last one";
}

TEST_F(AfterAStatus, ARequestThatWasSentAgainIsLoggedThoughFewAreWithTheNumberOfItsRetries) {
  test::AccessLogFile log(1000);
  asked();
  plane_.from_origin(0, kEmpty);
  send(client(), kGetRequest);
  plane_.from_origin(0, kBusy);
  plane_.from_origin(0, kEmpty);
  plane_.pass(1s);  // lines are collected for less than that
  const std::string said = log.text();
  EXPECT_TRUE(has(said, R"("retries":1,"retried":"status")")) << said;
  EXPECT_EQ(1, std::count(said.begin(), said.end(), '\n')) << said;
}

TEST_F(AfterAStatus, ARequestThatEndsOnAReusedConnectionIsNotLoggedWithTheCauseOfItsFirstOne) {
  asked();
  asked();
  plane_.from_origin(1, kEmpty);
  test::AccessLogFile log;
  plane_.from_origin(0, "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  ASSERT_EQ(0U, dials()) << "the other connection is idle";
  plane_.from_origin(1, kEmpty);
  plane_.pass(1s);
  const std::string said = log.text();
  EXPECT_TRUE(has(said, R"("reuse":1)")) << said;
  EXPECT_FALSE(has(said, "opened")) << said;
}

class AfterALateAttempt : public ARetry {
 protected:
  AfterALateAttempt() : ARetry(with([](config::Config& c) { c.request.per_try_timeout = 2s; })) {}
};

TEST_F(AfterALateAttempt, ARequestIsSentAgain) {
  asked();
  plane_.pass(3s);
  EXPECT_EQ(1U, dials());
  EXPECT_TRUE(origin(0).gone) << "the late attempt ends";
}

TEST_F(AfterALateAttempt, AClientOfAnAuthenticatedConnectionGetsTheFault) {
  test::MemoryWire& one = authenticated();
  plane_.pass(3s);
  EXPECT_EQ(0U, dials()) << "another connection has not authenticated the client";
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 504")) << one.outgoing;
}

}  // namespace
}  // namespace carpool::proxy
