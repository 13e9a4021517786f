// Unit tests of a response that the origin sent before it received the request: because it closes an idle connection
// while the request is on its way, or the late rest of another response.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/upstream/origin/origin_runtime.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty;
using test::kGetRequest;

constexpr std::string_view kPost = "POST http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx";

std::string closing(std::string_view status, std::string_view close = "Connection: close\r\n") {
  return std::string("HTTP/1.1 ")
      .append(status)
      .append(" Goodbye\r\n")
      .append(close)
      .append("Content-Length: 2\r\n\r\nno");
}

class ACrossingResponse : public test::ExchangeFixture {
 protected:
  explicit ACrossingResponse(config::Config settings = {}) : ExchangeFixture(std::move(settings)) {}
  // The client's second request was sent on the connection of the first one.
  test::MemoryWire& asked_twice(std::string_view request) {
    test::MemoryWire& one = asked_again(request);
    EXPECT_NE("", origin(0).outgoing);
    return one;
  }
  // The origin's bytes arrive while it has not acknowledged the last `unacked` bytes of the request.
  void crosses(std::string_view bytes) {
    origin(0).unacked = origin(0).outgoing.size();
    plane_.from_origin(0, bytes);
  }
  bool repeated() { return dials() == 1; }
  // Lets the request succeed on its new connection.
  void succeed(test::MemoryWire& one, std::string_view request) {
    ASSERT_TRUE(repeated());
    EXPECT_TRUE(has(connect().outgoing, request));
    plane_.from_origin(1, kEmpty);
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
    EXPECT_FALSE(has(one.outgoing, "Goodbye") || has(one.outgoing, "close")) << one.outgoing;
  }
};

class ACrossingCloseResponse : public ACrossingResponse, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Statuses, ACrossingCloseResponse, ::testing::Values("200", "400", "408", "503"));

TEST_P(ACrossingCloseResponse, IsNoAnswer) {
  test::MemoryWire& one = asked_twice(kPost);
  crosses(closing(GetParam()));
  EXPECT_TRUE(origin(0).gone);
  succeed(one, "POST /1");
}

// The origin did not say that it processes no further request.
TEST_F(ACrossingResponse, OfAnOriginThatStaysIsNoAnswerEither) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  crosses(closing("503", ""));
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, OfAnOriginThatStaysCostsARequestThatMustNotBeRepeated) {
  test::MemoryWire& one = asked_twice(kPost);
  crosses(closing("503", ""));
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "before it received the request")) << one.outgoing;
}

// Such a head costs its connection, too, but announces nothing.
TEST_F(ACrossingResponse, WithoutContentAndWithContradictingLengthsAnnouncesNoClose) {
  test::MemoryWire& one = asked_twice(kPost);
  crosses("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
}

constexpr std::string_view kHints = "HTTP/1.1 103 Early Hints\r\nLink: </of-another>\r\n\r\n";

TEST_F(ACrossingResponse, OfInterimHeadsReachesNoClient) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  plane_.pass(1ms);
  crosses(kHints);
  EXPECT_EQ("", one.outgoing);
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, IsNoAnswerBehindAnInterimHeadEither) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  crosses(std::string(kHints) + closing("200"));
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, OfInterimHeadsCostsARequestThatMustNotBeRepeatedEvenIfItAnnouncesAClose) {
  test::MemoryWire& one = asked_twice(kPost);
  crosses("HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
}

TEST_F(ACrossingResponse, OfInterimHeadsIsAnAnswerOnceAByteOfTheRequestHasArrived) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  origin(0).unacked = origin(0).outgoing.size() - 1;
  plane_.from_origin(0, kHints);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 103")) << one.outgoing;
}

TEST_F(ACrossingResponse, OpensNoTunnel) {
  test::MemoryWire& one =
      asked_twice("GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n");
  plane_.pass(1ms);
  crosses("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nof another");
  EXPECT_EQ("", one.outgoing);
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, IsNotTheLateRestOfAnotherOne) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  crosses("<p>The body of a response to HEAD</p>\r\n\r\n");
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, IsAnAnswerOnceAByteOfTheRequestHasArrived) {
  test::MemoryWire& one = asked_twice(kPost);
  origin(0).unacked = origin(0).outgoing.size() - 1;
  plane_.from_origin(0, closing("503"));
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503 Goodbye")) << one.outgoing;
}

TEST_F(ACrossingResponse, IsNotSuspectedOnANewConnection) {
  test::MemoryWire& one = asked(kPost);
  crosses(closing("503"));
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 503 Goodbye")) << one.outgoing;
}

// RFC 9110 §15.5.9.
TEST_F(ACrossingResponse, Of408IsNoAnswerToARequestThatMayBeRepeated) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  plane_.from_origin(0, closing("408"));
  succeed(one, "GET /1");
}

struct Answered {
  std::string_view request, before, close;
};
class AnAnswerOf408 : public ACrossingResponse, public ::testing::WithParamInterface<Answered> {};
INSTANTIATE_TEST_SUITE_P(WhereNothingElseIsProven, AnAnswerOf408,
                         ::testing::Values(Answered{kPost, "", "Connection: close\r\n"}, Answered{kGetRequest, "", ""},
                                           Answered{kGetRequest, "HTTP/1.1 103 Early Hints\r\n\r\n",
                                                    "Connection: close\r\n"}));

TEST_P(AnAnswerOf408, IsForTheClient) {
  test::MemoryWire& one = asked_twice(GetParam().request);
  plane_.from_origin(0, std::string(GetParam().before) + closing("408", GetParam().close));
  EXPECT_FALSE(repeated());
  EXPECT_TRUE(has(one.outgoing, "HTTP/1.1 408 Goodbye")) << one.outgoing;
}

void expect_408(const test::MemoryWire& one) {
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408 Goodbye")) << one.outgoing;
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\nno")) << one.outgoing;
}

config::Config without_retries() {
  config::Config settings;
  settings.request.max_retries = 0;
  return settings;
}
class WithoutRetries : public ACrossingResponse {
 protected:
  WithoutRetries() : ACrossingResponse(without_retries()) {}
};

TEST_F(WithoutRetries, AnAnswerOf408IsForTheClient) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  plane_.from_origin(0, closing("408"));
  EXPECT_FALSE(repeated());
  expect_408(one);
}

TEST_F(ACrossingResponse, Of408IsForTheClientOnceTheRetryBudgetIsSpent) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  RetryBudget& budget = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->retries;
  for (int i = 0; i < 1000; ++i) static_cast<void>(budget.withdraw());
  plane_.from_origin(0, closing("408"));
  EXPECT_FALSE(repeated());
  expect_408(one);
}

// No other connection has authenticated it.
TEST_F(ACrossingResponse, Of408IsForTheClientThatItsConnectionAuthenticated) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: NTLM abc\r\n\r\n");
  plane_.from_origin(0, kEmpty);
  one.outgoing.clear();
  origin(0).outgoing.clear();
  send(one, kGetRequest);
  ASSERT_NE("", origin(0).outgoing);
  plane_.from_origin(0, closing("408"));
  EXPECT_FALSE(repeated());
  expect_408(one);
}

config::Config repeating_after_a_reset() {
  config::Config settings;
  settings.request.retry_on = {"reset"};
  return settings;
}
class ACrossingGreeting : public ACrossingResponse {
 protected:
  ACrossingGreeting() : ACrossingResponse(repeating_after_a_reset()) {}
};

// A service of another protocol greets each connection in the same way.
TEST_F(ACrossingGreeting, IsTheMalformedResponseOfANewConnection) {
  test::MemoryWire& one = asked(kGetRequest);
  crosses("220 mail.test ESMTP\r\n");
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_FALSE(has(one.outgoing, "precede")) << one.outgoing;
}

TEST_F(ACrossingResponse, InTheTurnOfItsRequestIsNoAnswerWhateverItsStatus) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  crosses(closing("200", ""));
  EXPECT_TRUE(origin(0).gone);
  succeed(one, "GET /1");
}

TEST_F(ACrossingResponse, InTheTurnOfItsRequestCostsARequestThatMustNotBeRepeated) {
  test::MemoryWire& one = asked_twice(kPost);
  crosses(closing("200", ""));
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
}

// The system is not asked about a response that ends nothing, once the origin had time to answer.
TEST_F(ACrossingResponse, InALaterTurnIsNotSuspectedIfItEndsNothing) {
  test::MemoryWire& one = asked_twice(kGetRequest);
  plane_.pass(1ms);
  crosses(closing("200", ""));
  EXPECT_FALSE(repeated());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200 Goodbye")) << one.outgoing;
}

// No event has told of the bytes yet.
TEST_F(ACrossingResponse, IsFoundInTheSocketOfAConnectionThatRested) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kEmpty);
  one.outgoing.clear();
  origin(0).outgoing.clear();
  plane_.pass(100ms);
  origin(0).incoming = closing("503");
  send(one, kPost);
  EXPECT_EQ("", origin(0).outgoing);
  succeed(one, "POST /1");
}

TEST_F(ACrossingResponse, EndsTheClientWhoseConnectionItWas) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: NTLM abc\r\n\r\n");
  plane_.from_origin(0, kEmpty);
  one.outgoing.clear();
  origin(0).outgoing.clear();
  send(one, kGetRequest);
  ASSERT_NE("", origin(0).outgoing);
  crosses(closing("408"));
  EXPECT_EQ("", one.outgoing);
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

}  // namespace
}  // namespace carpool::proxy
