// Unit tests of HTTP/2 clients: which requests begin within a read, and with what.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/exchange_fixture.h"
#include "tests/unit/heap_in_use.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy {
namespace {
using namespace std::chrono_literals;

class AClientOfHttp2 : public test::ExchangeFixture {
 protected:
  // A client whose preface was read.
  test::MemoryWire& ready() {
    test::MemoryWire& one = client();
    send(one, std::string(http::kH2Preface) + http::frame(4, 0, 0, ""));
    return one;
  }
  static http::List_ post() {
    return {{":method", "POST"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/"}};
  }
  static std::string reset(unsigned stream) { return http::frame(3, 0, stream, http::number(8)); }
  void read(test::MemoryWire& wire, const std::string& bytes) {
    exec::assume_on_loop();
    clients_.send(wire, bytes, false);
  }
};

TEST_F(AClientOfHttp2, ThatResetsARequestInTheReadOfItsHeadCausesNoWork) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, post(), false) + reset(1));
  send(one, http::headers(3, post(), false) + http::data(3, "x", false) + reset(3));
  send(one, http::headers(5, post(), false) + http::headers(5, {{"x-trailer", "1"}}) + reset(5));
  EXPECT_EQ(0U, dials());
  send(one, http::headers(7, http::get()));
  EXPECT_EQ(1U, dials());
}

TEST_F(AClientOfHttp2, BeginsNoMoreRequestsInATurnIfTheyHaveBodies) {
  test::MemoryWire& one = ready();
  std::string many;
  for (unsigned n = 0; n < 40; ++n) {
    const std::string authority = "o" + std::to_string(n) + ".test";
    http::List_ head = post();
    head.at(2).second = authority;
    many += http::headers(2 * n + 1, head, false) + http::data(2 * n + 1, "x");
  }
  read(one, many);
  EXPECT_EQ(std::size_t{RequestPacer::kClientRequests}, dials());
  plane_.turn();
  EXPECT_EQ(40U, dials());
}

// Here every read ends inside a head, the next one of which begins in the read that completes it.
TEST_F(AClientOfHttp2, HasTheTimeOfOneHeadForEach) {
  test::MemoryWire& one = ready();
  const auto head = [](unsigned stream) { return http::headers(stream, http::get()); };
  const std::size_t part = head(1).size() / 2;
  send(one, head(1).substr(0, part));
  for (unsigned stream = 1; stream < 25; stream += 2) {
    plane_.pass(1s);
    send(one, head(stream).substr(part) + head(stream + 2).substr(0, part));
  }
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0));
  plane_.pass(plane_.listener.settings().header_timeout - 1ms);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0));
  plane_.pass(1ms);
  EXPECT_EQ(static_cast<int>(http::H2Error::enhance_your_calm), http::error_of(one.outgoing, 0));
}

TEST_F(AClientOfHttp2, PassesOnWhatFollowsItsHeadInTheSameRead) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, post(), false) + http::data(1, "some ", false) + http::data(1, "bytes", false) +
                http::headers(1, {{"x-trailer", "1"}}));
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(0, test::kEmpty);
  EXPECT_TRUE(has(origin(0).outgoing, "some bytes"));
  EXPECT_TRUE(has(origin(0).outgoing, "x-trailer: 1\r\n\r\n"));
  EXPECT_EQ(1U, idle()) << "the request was sent whole";
}

TEST_F(AClientOfHttp2, KeepsNoLargeTrailersThatArriveWithTheirHead) {
  test::MemoryWire& one = ready();
  // Returns how much more the heap holds after a request whose trailers arrive with its head, or later.
  const auto after = [&](unsigned stream, std::size_t size, bool later) {
    const std::string large(size, 'x');
    const std::string head = http::headers(stream, post(), false), sum = http::headers(stream, {{"x-sum", large}});
    const std::int64_t before = test::heap_in_use();
    send(one, later ? head : head + sum);
    if (dials() != 0) connect();
    if (later) send(one, sum);
    EXPECT_TRUE(has(origin(0).outgoing, large));
    plane_.from_origin(0, test::kEmpty);
    for (test::MemoryWire* wire : {&one, &origin(0)}) {
      std::string().swap(wire->incoming);
      std::string().swap(wire->outgoing);
    }
    return test::heap_in_use() - before;
  };
  after(1, 15'000, true);  // the loop keeps a batch for more
  EXPECT_LT(after(3, 12'000, false), 8192);
}

// The end of a body of known length is no byte for an origin of HTTP/1.1. From then on only the response is awaited:
// neither the rate of the body nor the time that it was silent counts any more.
TEST_F(AClientOfHttp2, WaitsForItsResponseFromAnEndOfItsBodyInAFrameOfItsOwn) {
  test::MemoryWire& one = ready();
  http::List_ head = post();
  head.emplace_back("content-length", "5");
  send(one, http::headers(1, head, false));
  ASSERT_EQ(1U, dials());
  connect();
  send(one, http::data(1, "hello", false));
  EXPECT_TRUE(has(origin(0).outgoing, "hello"));
  plane_.pass(14s);
  send(one, http::data(1, ""));
  const Duration limit = (*plane_.origins->at(*pool::parse_origin("http://a.test")))->request.response_header_timeout;
  ASSERT_LT(14s, limit);
  one.outgoing.clear();
  for (Duration passed{}; passed < limit - 2s; passed += 1s) plane_.pass(1s);
  EXPECT_EQ("", one.outgoing) << "a request that is complete is not slow";
  plane_.pass(3s);
  plane_.turn();  // writes what the deadline caused
  EXPECT_TRUE(has(one.outgoing, "http_response_timeout")) << one.outgoing;
}

// An origin that has read the whole body responds, possibly before the end of the client's stream arrives.
TEST_F(AClientOfHttp2, LeavesAConnectionThatHasTheWholeBodyToTheNextRequest) {
  for (const std::string& body : {std::string("hello"), std::string("hell")}) {
    SCOPED_TRACE(body);
    test::MemoryWire& one = ready();
    http::List_ head = post();
    head.emplace_back("content-length", "5");
    send(one, http::headers(1, head, false));
    if (dials() == 1) connect();
    send(one, http::data(1, body, false));
    plane_.from_origin(0, test::kEmpty);
    EXPECT_EQ(body == "hello" ? 1U : 0U, idle());
    send(one, http::data(1, ""));
  }
}

// The windows of a body that arrived early are given back.
TEST_F(AClientOfHttp2, GetsTheRoomOfABodyBackThatFollowsItsHead) {
  test::MemoryWire& one = ready();
  const std::string piece(16'000, 'x');
  std::string body;
  for (int n = 0; n < 4; ++n) body += http::data(1, piece, false);
  send(one, http::headers(1, post(), false) + body);
  connect();
  plane_.from_origin(0, "");
  one.outgoing.clear();
  std::size_t sent = 4;
  for (; sent < 40 && http::error_of(one.outgoing, 1) == -1; ++sent) send(one, http::data(1, piece, false));
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0));
  EXPECT_EQ(40U, sent);
}

// Each upload has a window of its own: those that wait for a connection leave room for another one.
TEST_F(AClientOfHttp2, MaySendInOneStreamWhileManyOthersWaitForTheirOrigin) {
  test::MemoryWire& one = ready();
  const std::string piece(13'107, 'x');
  std::size_t sent = 0;
  for (unsigned stream = 1; stream < 81; stream += 2) {  // as much as its window allows
    one.outgoing.clear();
    send(one, http::headers(stream, post(), false));
    for (std::size_t window = 65'535; window >= piece.size(); window -= piece.size(), sent += piece.size()) {
      send(one, http::data(stream, piece, false));
      for (const http::Frame& frame : http::frames(std::exchange(one.outgoing, {}))) {
        ASSERT_NE(frame.type, 7U) << "GOAWAY";
        if (frame.type == 8 && frame.stream == stream) window += http::code(frame);
      }
    }
  }
  EXPECT_GT(sent, 4'000'000U) << "eight times the window of the session";
}

// The peer must not take an error of the client for the end of its bytes.
TEST_F(AClientOfHttp2, ResetsThePeerOfATunnelThatItDoesNotEndInOrder) {
  const http::List_ connect_head{{":method", "CONNECT"}, {":authority", "a.test:80"}};
  for (const std::string& error : {reset(1), http::headers(1, {{"x-field", "1"}})}) {
    test::MemoryWire& one = ready();
    send(one, http::headers(1, connect_head, false) + http::data(1, "hello", false));
    ASSERT_EQ(1U, dials());
    test::MemoryWire& peer = connect();
    EXPECT_EQ("hello", peer.outgoing);
    send(one, error);
    EXPECT_TRUE(peer.gone && peer.cut);
    EXPECT_FALSE(peer.shut);
  }
}

// A peer that has ended its own bytes may still read.
TEST_F(AClientOfHttp2, ResetsThePeerOfATunnelThatHasEndedOnItsSide) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  test::MemoryWire& peer = connect();
  send(one, http::data(1, "hello", false));
  plane_.from_origin(0, "", true);
  EXPECT_FALSE(peer.gone);
  send(one, reset(1));
  EXPECT_TRUE(peer.gone && peer.cut);
  EXPECT_FALSE(peer.shut);
}

TEST_F(AClientOfHttp2, EndsATunnelInOrderAfterItsPeer) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  test::MemoryWire& peer = connect();
  plane_.from_origin(0, "", true);
  send(one, http::data(1, "bye"));
  EXPECT_EQ("bye", peer.outgoing);
  EXPECT_TRUE(peer.gone && peer.shut);
  EXPECT_FALSE(peer.cut);
}

// The peer that ended first still reads what the client sent before its end, also when the client has left.
TEST_F(AClientOfHttp2, LosesNoByteOfATunnelThatItEndsAfterItsPeer) {
  for (const bool leaves : {false, true}) {
    SCOPED_TRACE(leaves);
    test::MemoryWire& one = ready();
    send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
    ASSERT_EQ(1U, dials());
    test::MemoryWire& peer = connect();
    const std::size_t number = plane_.environment.wires.size() - 1;
    plane_.from_origin(number, "", true);
    peer.room = 3;
    send(one, http::data(1, "last words"));
    EXPECT_EQ("las", peer.outgoing);
    EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
    if (leaves) send(one, "", true);
    plane_.pass(10s);
    EXPECT_EQ(leaves, one.shut) << "a client that leaves does not wait for its tunnel";
    EXPECT_FALSE(peer.gone);
    const std::size_t closed = clients_.closed.size();
    peer.room = SIZE_MAX;
    plane_.from_origin(number, "", true);
    EXPECT_EQ("last words", peer.outgoing);
    EXPECT_TRUE(peer.gone && peer.shut);
    EXPECT_FALSE(peer.cut);
    EXPECT_EQ(leaves ? 1U : 0U, clients_.closed.size() - closed);
    plane_.pass(61s);  // listen.idle_timeout
    EXPECT_TRUE(one.shut);
  }
}

// The same where the client ends first, and the end of its peer closes the stream.
TEST_F(AClientOfHttp2, LosesNoByteOfATunnelThatItEndsBeforeItsPeer) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  test::MemoryWire& peer = connect();
  peer.room = 3;
  send(one, http::data(1, "last words"));
  peer.room = 0;
  plane_.from_origin(0, "", true);
  EXPECT_FALSE(peer.gone);
  send(one, http::headers(3, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  EXPECT_EQ(1U, dials()) << "the connection serves other streams meanwhile";
  peer.room = SIZE_MAX;
  plane_.from_origin(0, "", true);
  EXPECT_EQ("last words", peer.outgoing);
  EXPECT_TRUE(peer.gone && peer.shut);
  EXPECT_FALSE(peer.cut);
}

// Streams that end would otherwise leave any number of tunnels behind.
TEST_F(AClientOfHttp2, HasNoMoreTunnelsThatOutliveTheirStreamsThanItMayHaveStreams) {
  constexpr unsigned kMost = 250;
  constexpr int kRefused = 7;
  test::MemoryWire& one = ready();
  const auto ask = [&](unsigned n) {
    const std::string authority = "o" + std::to_string(n) + ".test:80";
    send(one, http::headers(2 * n + 1, {{":method", "CONNECT"}, {":authority", authority}}, false));
  };
  for (unsigned n = 0; n < kMost; ++n) {
    ask(n);
    ASSERT_EQ(1U, dials()) << n;
    connect().room = 0;
    plane_.from_origin(n, "", true);
    send(one, http::data(2 * n + 1, "last words"));
  }
  EXPECT_EQ(-1, http::error_of(one.outgoing, 2 * kMost - 1));
  ask(kMost);
  EXPECT_EQ(kRefused, http::error_of(one.outgoing, 2 * kMost + 1));
  EXPECT_EQ(0U, dials());
  origin(7).room = SIZE_MAX;
  plane_.from_origin(7, "", true);
  EXPECT_EQ("last words", origin(7).outgoing);
  ask(kMost + 1);
  EXPECT_EQ(1U, dials());
  ask(kMost + 2);
  EXPECT_EQ(kRefused, http::error_of(one.outgoing, 2 * kMost + 5));
}

// When the process ends, nothing waits for the peer.
TEST_F(AClientOfHttp2, TakesATunnelThatOutlivesItAlongWhenTheProcessEnds) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  test::MemoryWire& peer = connect();
  const std::size_t closed = clients_.closed.size();
  plane_.from_origin(0, "", true);
  peer.room = 3;
  send(one, http::data(1, "last words"));
  send(one, "", true);
  EXPECT_EQ(closed, clients_.closed.size());
  exec::assume_on_loop();
  clients_.h2.front()->end();
  EXPECT_EQ(closed + 1, clients_.closed.size());
  EXPECT_TRUE(peer.gone && peer.cut);
}

// RFC 9113 §8.5; RFC 8441 §5.
TEST_F(AClientOfHttp2, LearnsThatATunnelBrokeOffAlsoAfterItsPeerHasEnded) {
  constexpr int kConnectError = 10;
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(0, "", true);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
  plane_.pass(24h);  // request.idle_timeout
  plane_.turn();
  EXPECT_EQ(kConnectError, http::error_of(one.outgoing, 1));
}

// RFC 9113 §8.5; RFC 8441 §5.
TEST_F(AClientOfHttp2, LearnsWhichKindOfTunnelBrokeOff) {
  constexpr int kCancel = 8, kConnectError = 10;
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  connect();
  plane_.pass(24h);  // request.idle_timeout
  plane_.turn();
  EXPECT_EQ(kConnectError, http::error_of(one.outgoing, 1));

  http::List_ extended = post();
  extended.at(0).second = "CONNECT";
  extended.emplace_back(":protocol", "echo");
  test::MemoryWire& other = ready();
  send(other, http::headers(1, extended, false));
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  plane_.pass(24h);
  plane_.turn();
  EXPECT_EQ(kCancel, http::error_of(other.outgoing, 1));
}

TEST_F(AClientOfHttp2, EndsATunnelInOrder) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, {{":method", "CONNECT"}, {":authority", "a.test:80"}}, false));
  ASSERT_EQ(1U, dials());
  test::MemoryWire& peer = connect();
  send(one, http::data(1, "bye"));
  EXPECT_EQ("bye", peer.outgoing);
  EXPECT_TRUE(peer.shut);
  plane_.from_origin(0, "", true);
  EXPECT_TRUE(peer.gone);
  EXPECT_FALSE(peer.cut);
}

}  // namespace
}  // namespace carpool::proxy
