// Unit tests of one exchange between a client and an origin in memory: which bytes are relayed, when a connection is
// reused, what is retried, and how each side learns of the other's end.
#include <gtest/gtest.h>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

class AnExchange : public test::ExchangeFixture {};

// ---- the client's end ----

TEST_F(AnExchange, SendsTheRestOfAResponseToAClientThatEndsWithinItsNextHead) {
  std::size_t ended = 0;
  for (const std::string_view begun : {"\r\n", "GET http://a.t"}) {
    test::MemoryWire& one = client();
    send(one, kGetRequest);
    if (dials() != 0) connect();
    one.room = 20;
    plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole");
    send(one, begun, true);
    make_room(one, 10000);
    EXPECT_TRUE(one.outgoing.ends_with("whole")) << one.outgoing;
    EXPECT_EQ(++ended, clients_.closed.size());
  }
}

TEST_F(AnExchange, EndsTheConnectionOfAClientThatGetsA417WithoutItsBody) {
  const std::string waits =
      "PUT http://a.test/x HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 60\r\n\r\n";
  test::MemoryWire& one = client();
  send(one, waits);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(0, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(has(one.outgoing, "Connection: close")) << one.outgoing;
  send(one, "PUT http://a.test/x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(0U, dials()) << "the bytes may be the body";
}

// ---- the request's body ----

TEST_F(AnExchange, SendsABodyThatCameBeforeTheConnection) {
  test::MemoryWire& one = client();
  send(one, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_TRUE(connect().outgoing.ends_with("\r\n\r\nbody")) << origin(0).outgoing;
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_EQ(1U, idle()) << "sent whole, the connection is lent again";
}

TEST_F(AnExchange, SendsChunksAsTheyComeAndTheirEndAndTrailers) {
  test::MemoryWire& one = asked(
      "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n"
      "5\r\nfirst\r\n0\r\nx-sum: 7\r\n\r\n");
  EXPECT_TRUE(has(origin(0).outgoing, "\r\n\r\n5\r\nfirst\r\n0\r\n")) << origin(0).outgoing;
  EXPECT_TRUE(has(origin(0).outgoing, "x-sum: 7")) << origin(0).outgoing;
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200"));
}

TEST_F(AnExchange, SendsTheRestOfABodyAfterItsConnection) {
  test::MemoryWire& one = client();
  send(one, std::string("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n")
                .append(70000, 'a')
                .append("\r\n"));
  connect();
  send(one, "1\r\nb\r\n0\r\n\r\n");
  EXPECT_TRUE(has(origin(0).outgoing, std::string(70000, 'a')));
  EXPECT_TRUE(origin(0).outgoing.ends_with("\r\n1\r\nb\r\n0\r\n\r\n"));
}

TEST_F(AnExchange, ClosesAClientWhoseBodyWasNotReadWhole) {
  test::MemoryWire& one =
      asked(std::string("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n") +
            std::string(70000, 'x'));
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "onnection: close")) << one.outgoing;
  EXPECT_EQ(0U, idle()) << "the request was not sent whole";
}

// ---- the response ----

TEST_F(AnExchange, PassesTrailersAndNoForbiddenOnes) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\n\r\n");
  plane_.from_origin(0,
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\n"
                     "x-sum: 7\r\nContent-Length: 9\r\n\r\n");
  EXPECT_TRUE(has(one.outgoing, "2\r\nhi\r\n0\r\n")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "x-sum: 7")) << one.outgoing;
  EXPECT_FALSE(has(one.outgoing, "ength: 9")) << one.outgoing;
}

TEST_F(AnExchange, SendsAnOldClientNeitherInterimResponsesNorChunks) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\n\r\n");
  plane_.from_origin(
      0, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
  EXPECT_FALSE(has(one.outgoing, " 103 ")) << one.outgoing;
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\nhi")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone);
}

// Both timeouts are due in one turn of the loop.
TEST_F(AnExchange, ResetsAnOldClientWhoseResponseIsTruncatedThoughItsOwnTimeIsOverToo) {
  exec::assume_on_loop();
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\n\r\n");
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  plane_.pass(100ms);
  make_room(one, SIZE_MAX);  // an event of the client: its timer is later than that of the exchange
  plane_.pass(61s);
  plane_.turn();
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\nhi")) << one.outgoing;
  EXPECT_EQ(1U, clients_.closed.size());
  clients_.end_all();
  EXPECT_TRUE(one.gone && one.cut) << "an orderly end would look like the end of the response";
}

TEST_F(AnExchange, KeepsNoConnectionThatItsOriginCloses) {
  for (const std::string_view response : {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nbytes that nobody asked for"}) {
    test::MemoryWire& one = client();
    send(one, kGetRequest);
    const std::size_t n = plane_.environment.wires.size();
    connect();
    plane_.from_origin(n, response);
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
    EXPECT_EQ(0U, snapshot().alive()) << response;
  }
}

TEST_F(AnExchange, EndsAResponseWithItsConnection) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\n\r\nall of it", true);
  EXPECT_TRUE(has(one.outgoing, "all of it")) << one.outgoing;
  EXPECT_TRUE(one.outgoing.ends_with("0\r\n\r\n")) << one.outgoing;
  EXPECT_EQ(0U, snapshot().alive());
}

TEST_F(AnExchange, DoesNotLendAnAuthenticatedConnectionToAnotherClient) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: NTLM abc\r\n\r\n");
  plane_.from_origin(0, "HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM def\r\nContent-Length: 0\r\n\r\n");
  send(client(), kGetRequest);
  EXPECT_EQ(1U, dials());
  send(one, "GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n");
  EXPECT_EQ(2U, dials()) << "the private connection is another origin's";
}

TEST_F(AnExchange, ForwardsTheValidBeginningOfAMalformedResponse) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nno size");
  EXPECT_TRUE(has(one.outgoing, "first")) << one.outgoing;
}

TEST_F(AnExchange, WaitsLongerForAResponseHeadAfterAnInterimOne) {
  test::MemoryWire& one = asked();
  const Duration limit = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->request.response_header_timeout;
  ASSERT_LT(Duration::zero(), limit);
  plane_.pass(limit * 4 / 5);
  plane_.from_origin(0, "HTTP/1.1 103 Early Hints\r\n\r\n");
  plane_.pass(limit * 4 / 5);
  EXPECT_FALSE(has(one.outgoing, " 504 ")) << one.outgoing;
  plane_.pass(limit);
  EXPECT_TRUE(has(one.outgoing, " 504 ")) << one.outgoing;
}

TEST_F(AnExchange, LearnsFromTheFirstResponseHowLongItsConnectionIsKeptAlive) {
  asked();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n");
  const OriginRuntime& origin = **plane_.origins->at(*pool::parse_origin("http://a.test"));
  EXPECT_GT(5s, origin.destination->effective_limit());
}

TEST_F(AnExchange, LeavesNeitherATimerNorAUserBehind) {
  asked();
  plane_.from_origin(0, kEmpty);
  plane_.pass(1h);
  plane_.from_origin(0, "", true);
  EXPECT_EQ(0U, snapshot().leases());
}

// ---- retries ----

TEST_F(AnExchange, TakesNoOtherConnectionThatServedForTheSecondAttempt) {
  test::MemoryWire& one = client();
  test::MemoryWire& other = client();
  send(one, kGetRequest);
  send(other, kGetRequest);
  while (dials() != 0) connect();
  for (std::size_t n = 0; n < plane_.environment.wires.size(); ++n) plane_.from_origin(n, kEmpty);
  ASSERT_EQ(2U, idle());
  origin(0).outgoing.clear();
  origin(1).outgoing.clear();
  send(one, kGetRequest);
  plane_.from_origin(origin(0).outgoing.empty() ? 1 : 0, "", true);
  EXPECT_EQ(1U, dials());
}

constexpr std::string_view kMisdirected = "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n";

TEST_F(AnExchange, SendsABodyAgainThatItHoldsWhole) {
  asked("PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nwhole");
  plane_.from_origin(0, kMisdirected);
  ASSERT_EQ(1U, dials());
  EXPECT_TRUE(connect().outgoing.ends_with("\r\n\r\nwhole"));
}

TEST_F(AnExchange, SendsNoBodyAgainThatItDoesNotHoldWhole) {
  test::MemoryWire& one =
      asked_again(std::string("PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n") +
                  std::string(20000, 'x'));
  plane_.pass(300ms);
  ASSERT_TRUE(has(origin(0).outgoing, "PUT")) << "it streams";
  send(one, std::string(80000, 'x'));
  plane_.from_origin(0, kMisdirected);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 421")) << one.outgoing;
}

TEST_F(AnExchange, SendsNothingAgainOnceAByteCameBack) {
  test::MemoryWire& one = asked_again();
  plane_.from_origin(0, "HTTP/1.1 2", true);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
}

TEST_F(AnExchange, AsksAnOriginNoSecondTimeThatSendsBytesBeforeTheRequest) {
  test::MemoryWire& one = client();
  send(one, kGetRequest);
  plane_.environment.connect().incoming = "220 a.test\r\n";
  plane_.environment.connections.at(0)->transport().on_readiness({true, true, false});
  plane_.turn();
  EXPECT_EQ(0U, dials());
  EXPECT_EQ("", origin(0).outgoing);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "the origin sent bytes before the request")) << one.outgoing;
  EXPECT_EQ(0U, snapshot().alive());
}

TEST_F(AnExchange, AsksOnceMoreIfItsNewConnectionEndsAtOnce) {
  send(client(), kGetRequest);
  plane_.environment.connect().ended = true;
  plane_.environment.connections.at(0)->transport().on_readiness({true, true, false});
  plane_.turn();
  EXPECT_EQ(1U, dials());
}

TEST_F(AnExchange, TakesTheBytesOfAnIdleConnectionForTheLastOnesOfItsOrigin) {
  exec::assume_on_loop();
  send(client(), kGetRequest);
  ASSERT_EQ(1U, dials());
  clients_.end_all();
  connect();
  plane_.pass(10s);
  ASSERT_EQ(1U, idle());
  origin(0).incoming = "HTTP/1.1 408 Request Timeout\r\n\r\n";
  plane_.environment.connections.at(0)->transport().on_readiness({true, true, false});
  send(client(), kGetRequest);
  EXPECT_EQ(1U, dials());
}

TEST_F(AnExchange, SendsNothingOnAConnectionWhoseEndIsKnown) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kEmpty);
  origin(0).outgoing.clear();
  origin(0).ended = true;
  plane_.environment.connections.at(0)->transport().on_readiness({true, true, true});
  send(one, kGetRequest);
  EXPECT_EQ("", origin(0).outgoing);
  EXPECT_EQ(1U, dials());
}

TEST_F(AnExchange, SendsARequestAgainOnANewConnectionIfAReusedOneEnds) {
  test::MemoryWire& one = asked_again();
  EXPECT_TRUE(has(origin(0).outgoing, "GET /1"));
  plane_.from_origin(0, "", true);
  ASSERT_EQ(1U, dials());
  EXPECT_TRUE(has(connect().outgoing, "GET /1"));
  plane_.from_origin(1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain");
  EXPECT_TRUE(one.outgoing.ends_with("again")) << one.outgoing;
}

TEST_F(AnExchange, SendsNoRequestAgainThatANewConnectionMayHaveProcessed) {
  test::MemoryWire& one = asked("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx");
  plane_.from_origin(0, "", true);
  EXPECT_EQ(0U, dials());
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  std::uint64_t failures = 0;
  for (const std::uint64_t count : snapshot().failures) failures += count;
  EXPECT_EQ(1U, failures);
}

TEST_F(AnExchange, AsksOnceMoreAfter421) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ("", one.outgoing);
  connect();
  plane_.from_origin(1, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 421")) << one.outgoing;
  EXPECT_EQ(0U, dials());
}

TEST_F(AnExchange, BreaksAResponseOffThatBeganInsteadOfAskingAgain) {
  test::MemoryWire& one = asked_again();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true);
  EXPECT_EQ(0U, dials());
  EXPECT_TRUE(one.outgoing.ends_with("half")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone);
}

TEST_F(AnExchange, DoesNotSendABodyOnAConnectionThatWasIdleForLong) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kEmpty);
  plane_.pass(6s);
  send(one, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_EQ(1U, dials());
}

// ---- tunnels ----

TEST_F(AnExchange, CarriesBytesBothWaysAndEachEndThroughATunnel) {
  test::MemoryWire& one =
      asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  plane_.from_origin(0, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 101")) << one.outgoing;
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\nfirst")) << one.outgoing;
  EXPECT_EQ(1U, snapshot().connections[static_cast<std::size_t>(pool::ConnectionStatus::tunnel)]);
  send(one, "to the origin");
  EXPECT_TRUE(origin(0).outgoing.ends_with("to the origin"));
  plane_.from_origin(0, "to the client");
  EXPECT_TRUE(one.outgoing.ends_with("to the client"));
  send(one, "", true);
  EXPECT_TRUE(origin(0).shut);
  EXPECT_FALSE(one.shut);
  plane_.from_origin(0, "", true);
  EXPECT_TRUE(one.shut || one.gone);
  EXPECT_EQ(0U, snapshot().alive());
}

TEST_F(AnExchange, PassesTheOriginsEndOfATunnelOn) {
  test::MemoryWire& one = asked("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  plane_.from_origin(0, "last words", true);
  EXPECT_TRUE(one.outgoing.ends_with("last words"));
  EXPECT_TRUE(one.shut);
  send(one, "still heard");
  EXPECT_TRUE(origin(0).outgoing.ends_with("still heard"));
}

TEST_F(AnExchange, RefusesToSwitchInsideARequestsBody) {
  test::MemoryWire& one = asked(std::string("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\n"
                                            "Upgrade: echo\r\nContent-Length: 100000\r\n\r\n") +
                                std::string(70000, 'x'));
  plane_.from_origin(0, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "onnection: close")) << one.outgoing;
}

// ---- clients ----

TEST_F(AnExchange, ClosesAClientThatAsksForIt) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

TEST_F(AnExchange, ClosesAClientWhoseTargetIsNone) {
  test::MemoryWire& one = client();
  send(one, "GET http://a.test:99999/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 400")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "onnection: close")) << one.outgoing;
}

TEST_F(AnExchange, AnswersWhenItsDialFails) {
  test::MemoryWire& one = client();
  send(one, kGetRequest);
  fail_dial();
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_FALSE(one.shut || one.gone || !clients_.closed.empty());
}

TEST_F(AnExchange, ClosesAClientAtOnceThatIsDrainedBeforeItsResponse) {
  exec::assume_on_loop();
  test::MemoryWire& one = client();
  send(one, kGetRequest);
  clients_.drain_all();
  fail_dial();
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "onnection: close")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

constexpr std::string_view kOldThatStays =
    "GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n";

TEST_F(AnExchange, KeepsNoOldClientOfAProxy) {
  test::MemoryWire& one = asked(kOldThatStays);
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(has(one.outgoing, "Connection: close\r\n")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone);
}

TEST_F(AnExchange, KeepsAnOldClientOfAGateway) {
  plane_.listen.origin = "http://a.test";
  plane_.listener.change(plane_.listen);
  test::MemoryWire& one = asked(kOldThatStays);
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(has(one.outgoing, "Connection: keep-alive\r\n")) << one.outgoing;
  EXPECT_FALSE(one.shut || one.gone);
}

TEST_F(AnExchange, GivesItsConnectionBackWhenItsClientEnds) {
  asked();
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  exec::assume_on_loop();
  clients_.end_all();
  plane_.turn();
  EXPECT_EQ(0U, snapshot().leases());
}

TEST_F(AnExchange, LeavesTheLineAndItsConnectionWithItsClient) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\n\r\n");
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  send(one, "", true);
  plane_.pass(plane_.listen.half_close + 1s);
  plane_.pass(1h);
  EXPECT_EQ(0U, snapshot().leases());
  EXPECT_EQ(0U, idle());
}

std::size_t replies(const test::MemoryWire& wire) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = wire.outgoing.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST_F(AnExchange, AnswersAPipeliningClientInTurnsWithTheOthers) {
  exec::assume_on_loop();
  test::MemoryWire& one = client();
  std::string all;
  for (int n = 0; n < 1000; ++n) all += "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";
  clients_.send(one, all);  // one event of its socket
  EXPECT_LE(1U, replies(one));
  EXPECT_GE(16U, replies(one));
  plane_.turn();
  EXPECT_EQ(1000U, replies(one));
  EXPECT_TRUE(clients_.closed.empty());
}

TEST_F(AnExchange, ClosesAClientThatEndsInsideAHead) {
  test::MemoryWire& one = client();
  send(one, "GET http://a.test/ HT", true);
  EXPECT_TRUE(one.gone || clients_.closed.size() == 1);
  EXPECT_EQ("", one.outgoing);
}

TEST_F(AnExchange, RefusesAMalformedRequestAndItsClient) {
  test::MemoryWire& one = client();
  send(one, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nbad header\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 400")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

TEST_F(AnExchange, ReadsAClientNoFasterThanTheOriginTakesItsBody) {
  test::MemoryWire& one = client();
  const std::string block(std::size_t{256} * 1024, 'x');
  send(one, "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000000\r\n\r\n");
  send(one, block);
  ASSERT_EQ(1U, dials());
  connect();
  origin(0).room = 0;
  for (int n = 0; n < 40; ++n) send(one, block);
  EXPECT_LT(std::size_t{8} * 1024 * 1024, one.incoming.size()) << "the client was read though the origin takes nothing";
  origin(0).room = SIZE_MAX;
  plane_.from_origin(0, "");
  EXPECT_EQ("", one.incoming);
}

}  // namespace
}  // namespace carpool::proxy
