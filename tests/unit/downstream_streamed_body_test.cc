// Unit tests of bodies without a Content-Length that arrive slowly: they end only while another request waits for the
// connection that they occupy.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

constexpr std::string_view kChunked =
    "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n";

// The origin has one connection. The grace is 10 seconds.
class AStreamedBody : public test::ExchangeFixture {
 protected:
  explicit AStreamedBody(config::Config settings = one_connection()) : ExchangeFixture(std::move(settings)) {
    plane_.listen.body_grace = 10s;
    plane_.listener.change(plane_.listen);
  }
  static config::Config one_connection() {
    config::Config settings;
    settings.pool.size = 1;
    settings.pool.wait_timeout = 30s;
    return settings;
  }
  // The client sends a byte in each second.
  void drip(test::MemoryWire& one, int seconds) {
    for (int n = 0; n < seconds; ++n) {
      plane_.pass(1s);
      send(one, "1\r\ny\r\n");
    }
  }
  test::MemoryWire& waiter() {
    test::MemoryWire& one = client();
    send(one, kGetRequest);
    EXPECT_EQ(0U, dials());
    return one;
  }
};

TEST_F(AStreamedBody, GoesOnWhileNobodyWaits) {
  test::MemoryWire& one = asked(kChunked);
  drip(one, 600);
  EXPECT_EQ("", one.outgoing);
  send(one, "0\r\n\r\n");
  plane_.from_origin(0, kEmpty);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 200")) << one.outgoing;
  EXPECT_EQ(1U, idle());
}

TEST_F(AStreamedBody, EndsWithinTwoSecondsOnceAnotherRequestWaits) {
  test::MemoryWire& one = asked(kChunked);
  drip(one, 60);
  test::MemoryWire& other = waiter();
  drip(one, 2);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408")) << one.outgoing;
  EXPECT_TRUE(has(one.outgoing, "body_min_rate")) << one.outgoing;
  EXPECT_TRUE(origin(0).gone) << "the request is incomplete";
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_EQ(0U, other.outgoing.find("HTTP/1.1 200")) << other.outgoing;
}

TEST_F(AStreamedBody, HasItsGraceWithAWaiterToo) {
  test::MemoryWire& one = asked(kChunked);
  waiter();
  drip(one, 9);
  EXPECT_EQ("", one.outgoing);
  drip(one, 2);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408")) << one.outgoing;
}

TEST_F(AStreamedBody, OfASilentClientEndsTheSameWay) {
  test::MemoryWire& one = asked(kChunked);
  waiter();
  plane_.pass(10s);
  plane_.pass(1s);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408")) << one.outgoing;
}

TEST_F(AStreamedBody, AtTheMinimumRateIsNotEnded) {
  test::MemoryWire& one = asked(kChunked);
  waiter();
  for (int n = 0; n < 25; ++n) {
    plane_.pass(1s);
    send(one, "1f4\r\n" + std::string(500, 'y') + "\r\n");
  }
  EXPECT_EQ("", one.outgoing);
}

TEST_F(AStreamedBody, ThatItsOriginAnswersIsNotEnded) {
  test::MemoryWire& one = asked(kChunked);
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  waiter();
  drip(one, 29);
  EXPECT_FALSE(origin(0).gone);
  plane_.from_origin(0, "3\r\nbye\r\n0\r\n\r\n");
  EXPECT_TRUE(has(one.outgoing, "bye")) << one.outgoing;
}

TEST_F(AStreamedBody, HasItsGraceFromItsConnectionOn) {
  test::MemoryWire& first = asked();
  test::MemoryWire& one = client();
  send(one, kChunked);
  drip(one, 9);
  test::MemoryWire& other = waiter();
  plane_.from_origin(0, kEmpty);  // the connection is now that of the streamed body
  EXPECT_EQ(0U, first.outgoing.find("HTTP/1.1 200"));
  drip(one, 9);
  EXPECT_EQ("", one.outgoing);
  drip(one, 2);
  EXPECT_EQ(0U, one.outgoing.find("HTTP/1.1 408")) << one.outgoing;
  EXPECT_EQ("", other.outgoing);
}

TEST_F(AStreamedBody, DoesNotCountTimeInWhichTheOriginDoesNotRead) {
  test::MemoryWire& one = asked(kChunked);
  origin(0).room = 0;
  send(one, "100000\r\n" + std::string(0x100000, 'y') + "\r\n");
  waiter();
  plane_.pass(25s);
  plane_.pass(1s);
  EXPECT_EQ("", one.outgoing);
}

TEST_F(AStreamedBody, OfAClientThatExpects100HasItsGraceFromThe100On) {
  test::MemoryWire& one =
      asked("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 60\r\n\r\n");
  waiter();
  plane_.pass(15s);
  EXPECT_EQ("", one.outgoing) << "it waits for the origin";
  plane_.from_origin(0, "HTTP/1.1 100 Continue\r\n\r\n");
  plane_.pass(9s);
  EXPECT_FALSE(has(one.outgoing, " 408 ")) << one.outgoing;
  plane_.pass(2s);
  EXPECT_TRUE(has(one.outgoing, " 408 ")) << one.outgoing;
}

TEST_F(AStreamedBody, IsAwaitedFromItsClientOnlyOnceTheOriginHasAskedForIt) {
  std::size_t attempts = 0;
  for (const std::string_view interim : {"", "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    test::MemoryWire& one =
        asked("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 60\r\n\r\n");
    plane_.from_origin(attempts++, interim);
    plane_.pass(61s);
    plane_.pass(500ms);
    const bool of_client = interim.find(" 100 ") != std::string_view::npos;
    EXPECT_TRUE(has(one.outgoing, of_client ? " 408 " : " 504 ")) << one.outgoing;
    EXPECT_EQ(!of_client, has(one.outgoing, "waiting for 100 (Continue)")) << one.outgoing;
  }
}

config::Config three_connections() {
  config::Config settings;
  settings.pool.size = 3;
  settings.pool.wait_timeout = 60s;
  return settings;
}

class StreamedBodies : public AStreamedBody {
 protected:
  StreamedBodies() : AStreamedBody(three_connections()) {}
};

TEST_F(StreamedBodies, EndOneForEachRequestThatWaits) {
  const std::vector<test::MemoryWire*> bodies{&asked(kChunked), &asked(kChunked), &asked(kChunked)};
  const auto ended = [&] {
    return std::count_if(bodies.begin(), bodies.end(), [](const auto* one) { return has(one->outgoing, " 408 "); });
  };
  plane_.pass(20s);
  EXPECT_EQ(0, ended());
  test::MemoryWire& other = waiter();
  for (int n = 0; n < 5; ++n) plane_.pass(1s);
  EXPECT_EQ(1, ended());
  connect();
  plane_.from_origin(3, kEmpty);
  EXPECT_EQ(0U, other.outgoing.find("HTTP/1.1 200")) << other.outgoing;
  for (int n = 0; n < 5; ++n) plane_.pass(1s);
  EXPECT_EQ(1, ended());
}

}  // namespace
}  // namespace carpool::proxy
