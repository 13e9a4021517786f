// Unit tests of an HTTP/1.1 client alone: the time of its heads, the close that its responses announce, and the
// protocols to which it is switched.
#include <gtest/gtest.h>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

class AClient : public test::ExchangeFixture {
 protected:
  static constexpr std::string_view kLocal = "OPTIONS * HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";
  static constexpr std::string_view kBegun = kLocal.substr(0, 30);
  static constexpr std::string_view kUnfinished =
      "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
};

TEST_F(AClient, HasTheWholeTimeForTheHeadThatFollowsOneInTheSameBytes) {
  test::MemoryWire& one = client();
  send(one, kBegun);
  plane_.pass(plane_.listen.header_timeout - 1s);
  send(one, std::string(kLocal.substr(kBegun.size())).append(kBegun));
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  one.outgoing.clear();
  plane_.pass(plane_.listen.header_timeout - 1s);
  EXPECT_EQ("", one.outgoing);
  send(one, kLocal.substr(kBegun.size()));
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
}

TEST_F(AClient, LearnsFromALocalReplyThatItsOwnConnectionToTheOriginHasEnded) {
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: NTLM abc\r\n\r\n");
  plane_.from_origin(0, test::kEmpty);
  one.outgoing.clear();
  send(one, kBegun);
  plane_.from_origin(0, "", true);
  EXPECT_FALSE(one.shut || one.gone) << "a request has begun";
  send(one, kLocal.substr(kBegun.size()));
  EXPECT_TRUE(has(one.outgoing, "Connection: close\r\n")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

// As after 100 (Continue): what it got before its FIN does not show that it waits.
TEST_F(AClient, ThatEndsBehindAnInterimResponseHasHalfCloseForItsResponse) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(has(one.outgoing, "HTTP/1.1 100")) << one.outgoing;
  send(one, "", true);
  plane_.pass(plane_.listen.half_close + 1s);
  EXPECT_TRUE(origin(0).gone);
  EXPECT_EQ(0U, snapshot().leases());
}

TEST_F(AClient, ThatTakesAnInterimResponseAfterItsEndWaitsForItsResponse) {
  test::MemoryWire& one = asked();
  send(one, "", true);
  plane_.from_origin(0, "HTTP/1.1 103 Early Hints\r\n\r\n");
  plane_.pass(plane_.listen.half_close + 1s);
  plane_.from_origin(0, test::kEmpty);
  EXPECT_TRUE(has(one.outgoing, "HTTP/1.1 200 OK")) << one.outgoing;
}

TEST_F(AClient, ThatResetsItsConnectionAfterItsEndIsLostAtOnce) {
  test::MemoryWire& one = asked();
  send(one, "", true);
  EXPECT_FALSE(origin(0).gone) << "it may wait for its response";
  one.broken = true;
  send(one, "", true);
  EXPECT_TRUE(origin(0).gone);
  EXPECT_EQ(0U, snapshot().leases());
  EXPECT_EQ(1U, clients_.closed.size());
}

// RFC 9112 §9.5: it stops sending when it sees that its body is not wanted.
TEST_F(AClient, ThatEndsInsideItsRequestGetsTheRestOfAResponseThatHasBegun) {
  test::MemoryWire& one = asked(kUnfinished);
  plane_.from_origin(0, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 12\r\n\r\n0123");
  send(one, "", true);
  for (const std::string_view part : {"4567", "89ab"}) {
    plane_.pass(plane_.listen.half_close - 100ms);
    plane_.from_origin(0, part);
  }
  EXPECT_TRUE(one.outgoing.ends_with("\r\n\r\n0123456789ab")) << one.outgoing;
  EXPECT_TRUE(origin(0).gone) << "it has not got the whole request";
  EXPECT_EQ(1U, clients_.closed.size());
  EXPECT_EQ(0U, snapshot().leases());
}

TEST_F(AClient, ThatEndsInsideItsRequestHasLeftOnceItsResponseIsSilentForHalfClose) {
  test::MemoryWire& one = asked(kUnfinished);
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\n\r\n0123");
  send(one, "", true);
  plane_.from_origin(0, "4567");
  plane_.pass(plane_.listen.half_close - 100ms);
  send(one, "", true);
  EXPECT_FALSE(origin(0).gone);
  plane_.pass(plane_.listen.half_close);
  EXPECT_TRUE(origin(0).gone);
  EXPECT_EQ(1U, clients_.closed.size());
  EXPECT_FALSE(has(one.outgoing, "\r\n0\r\n\r\n")) << one.outgoing;
}

TEST_F(AClient, ThatEndsInsideItsRequestAndReadsSlowlyHasTheTimeOfASlowReader) {
  test::MemoryWire& one = asked(kUnfinished);
  one.room = 100;
  const std::string body = test::numbered(1000);
  plane_.from_origin(0, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2000\r\n\r\n" + body);
  send(one, "", true);
  plane_.pass(plane_.listen.half_close + 1s);
  EXPECT_FALSE(origin(0).gone);
  make_room(one, SIZE_MAX);
  plane_.from_origin(0, body);
  EXPECT_TRUE(one.outgoing.ends_with(body + body)) << one.outgoing.size();
}

TEST_F(AClient, ThatEndsInsideItsRequestWaitsForNoResponse) {
  test::MemoryWire& one = asked(kUnfinished);
  send(one, "", true);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 400")) << one.outgoing;
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(AClient, HasNoMoreThanTheTimeOfAHead) {
  test::MemoryWire& one = client();
  send(one, kBegun);
  plane_.pass(plane_.listen.header_timeout - 1s);
  send(one, kLocal.substr(kBegun.size(), 1));
  plane_.pass(2s);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408")) << one.outgoing;
}

// RFC 9110 §7.8: it could not know which protocol the tunnel has.
TEST_F(AClient, IsNotSwitchedToAProtocolThatItDidNotOffer) {
  for (const std::string upgrade : {"", "Upgrade: h2c\r\n", "Upgrade: other\r\n", "Upgrade: echo, other\r\n"}) {
    test::MemoryWire& one = client();
    send(one, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: h2c, Echo\r\n\r\n");
    ASSERT_EQ(1U, dials());
    const std::size_t n = plane_.environment.wires.size();
    connect();
    plane_.from_origin(n, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n" + upgrade + "\r\nraw");
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 502")) << upgrade << one.outgoing;
    EXPECT_FALSE(has(one.outgoing, "raw")) << one.outgoing;
    EXPECT_TRUE(origin(n).gone);
  }
}

TEST_F(AClient, ThatHasNotAskedYetHasTimeForOneRequestAfterADrain) {
  exec::assume_on_loop();
  test::MemoryWire& one = client();
  plane_.pass(30s);
  clients_.drain_all();
  plane_.pass(900ms);
  EXPECT_FALSE(one.shut || one.gone);
  send(one, kLocal);
  EXPECT_TRUE(has(one.outgoing, "Connection: close\r\n")) << one.outgoing;
  EXPECT_TRUE(one.shut || one.gone || clients_.closed.size() == 1);
}

TEST_F(AClient, ThatNeverAsksDelaysADrainByThisTimeAlone) {
  exec::assume_on_loop();
  client();
  clients_.drain_all();
  plane_.pass(900ms);
  clients_.drain_all();
  EXPECT_TRUE(clients_.closed.empty());
  plane_.pass(200ms);
  EXPECT_EQ(1U, clients_.closed.size());
}

// It reads the response when it has sent everything: a reset before would cost it the response.
class AClientThatStillSends : public AClient {
 protected:
  AClientThatStillSends() : one_(limited_client()) {
    send(one_, "PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000000\r\n\r\n");
    EXPECT_EQ(0U, one_.outgoing.find("HTTP/1.1 413")) << one_.outgoing;
    EXPECT_TRUE(one_.shut);
  }
  bool lives() const { return clients_.closed.empty(); }
  test::MemoryWire& limited_client() {
    plane_.listen.max_body = 1000;
    plane_.listener.change(plane_.listen);
    return client();
  }
  test::MemoryWire& one_;
};

TEST_F(AClientThatStillSends, IsReadToItsEndAfterAnEarlyReply) {
  for (int second = 0; second < 20; ++second) {
    plane_.pass(1s);
    send(one_, std::string(std::size_t{512} * 1024, 'x'));
    ASSERT_TRUE(lives()) << second;
    EXPECT_EQ("", one_.incoming);
  }
  send(one_, "", true);
  EXPECT_FALSE(lives());
}

TEST_F(AClientThatStillSends, IsClosedOnceItIsSilent) {
  plane_.pass(4s);
  EXPECT_TRUE(lives());
  plane_.pass(1s);
  EXPECT_FALSE(lives());
}

TEST_F(AClientThatStillSends, IsClosedAfterAWhileHoweverItSends) {
  for (int second = 0; second < 29; ++second) {
    plane_.pass(1s);
    send(one_, "x");
  }
  EXPECT_TRUE(lives());
  plane_.pass(1s);
  EXPECT_FALSE(lives());
}

TEST_F(AClientThatStillSends, DelaysADrainForAMomentOnly) {
  exec::assume_on_loop();
  clients_.drain_all();
  plane_.pass(1s);
  send(one_, "x");
  EXPECT_TRUE(lives());
  plane_.pass(1s);
  EXPECT_FALSE(lives());
}

TEST_F(AClientThatStillSends, IsShedAsIdle) {
  exec::assume_on_loop();
  EXPECT_TRUE(clients_.end_idle());
  EXPECT_FALSE(lives());
  EXPECT_FALSE(clients_.end_idle());
}

TEST_F(AClient, StillSendsThoughItsOwnConnectionToTheOriginHasEnded) {
  plane_.listen.max_body = 1000;
  plane_.listener.change(plane_.listen);
  test::MemoryWire& one = asked("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nAuthorization: NTLM abc\r\n\r\n");
  plane_.from_origin(0, test::kEmpty);
  one.outgoing.clear();
  send(one, "PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000000\r\n\r\n");
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 413")) << one.outgoing;
  plane_.from_origin(0, "", true);
  EXPECT_TRUE(clients_.closed.empty());
  exec::assume_on_loop();
  EXPECT_TRUE(clients_.end_idle());
  EXPECT_EQ(1U, clients_.closed.size());
}

// The bytes are in the socket, and their event comes after the timer.
TEST_F(AClient, WhoseRequestHasArrivedIsServedInsteadOfClosed) {
  exec::assume_on_loop();
  for (const bool drained : {true, false}) {
    test::MemoryWire& one = client();
    if (drained) clients_.drain_all();
    one.incoming = kLocal;
    plane_.pass(drained ? Duration(1s) : plane_.listen.idle_timeout);
    EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << drained << one.outgoing;
    EXPECT_EQ(drained, has(one.outgoing, "Connection: close\r\n")) << one.outgoing;
  }
}

TEST_F(AClient, WhoseRequestHasArrivedIsNotShedAsIdle) {
  exec::assume_on_loop();
  test::MemoryWire& one = client();
  one.incoming = kLocal;
  EXPECT_FALSE(clients_.end_idle());
  EXPECT_FALSE(clients_.end_idle()) << "the bytes are no longer in the socket, but not parsed yet";
  plane_.turn();
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_TRUE(clients_.end_idle());
}

class AClientWithAPartOfARecord : public AClient {
 protected:
  AClientWithAPartOfARecord() : one_(client()) {
    send(one_, kLocal);
    one_.partial = true;
    send(one_, "");
  }
  bool lives() const { return clients_.closed.empty(); }
  test::MemoryWire& one_;
};

TEST_F(AClientWithAPartOfARecord, IsClosedWhenItsIdleTimeIsOver) {
  plane_.pass(plane_.listen.idle_timeout - 1s);
  EXPECT_TRUE(lives());
  plane_.pass(1s);
  EXPECT_FALSE(lives());
}

TEST_F(AClientWithAPartOfARecord, DelaysADrainForAMomentOnly) {
  exec::assume_on_loop();
  clients_.drain_all();
  EXPECT_TRUE(lives());
  plane_.pass(1s);
  EXPECT_FALSE(lives());
}

TEST_F(AClientWithAPartOfARecord, IsShedAsIdle) {
  exec::assume_on_loop();
  EXPECT_TRUE(clients_.end_idle());
  plane_.turn();
  EXPECT_FALSE(lives());
}

}  // namespace
}  // namespace carpool::proxy
