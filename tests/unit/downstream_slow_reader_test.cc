// Unit tests of clients that accept a response slowly: they end only while another request waits for the connection
// that they occupy.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::kEmpty, test::kGetRequest;

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
constexpr std::size_t kPart = 200'000;  // more than carpool holds for a client

// The origin has one connection. The grace is 10 seconds.
class ASlowReader : public test::ExchangeFixture {
 protected:
  ASlowReader() : ExchangeFixture(one_connection()) {
    plane_.listen.body_grace = 10s;
    plane_.listener.change(plane_.listen);
  }
  static config::Config one_connection() {
    config::Config settings;
    settings.pool.size = 1;
    settings.pool.wait_timeout = 60s;
    return settings;
  }
  // A client that has not accepted the part of the response which has arrived.
  test::MemoryWire& behind() {
    test::MemoryWire& one = asked();
    one.room = 0;
    plane_.from_origin(0, std::string(kHead) + std::string(kPart, 'x'));
    return one;
  }
  // The client accepts so many bytes in each second.
  void read(test::MemoryWire& one, std::size_t bytes, int seconds) {
    for (int n = 0; n < seconds; ++n) {
      plane_.pass(1s);
      if (!origin(0).gone) make_room(one, bytes);
    }
  }
  // Ends all clients.
  bool was_cut(const test::MemoryWire& one) {
    exec::assume_on_loop();
    clients_.end_all();
    return one.cut;
  }
  test::MemoryWire& waiter() {
    test::MemoryWire& one = client();
    send(one, kGetRequest);
    EXPECT_EQ(0U, dials());
    return one;
  }
};

TEST_F(ASlowReader, GoesOnWhileNobodyWaits) {
  test::MemoryWire& one = behind();
  read(one, 1, 600);
  EXPECT_FALSE(origin(0).gone);
  EXPECT_FALSE(one.gone);
}

TEST_F(ASlowReader, IsEndedWithinTwoSecondsOnceAnotherRequestWaits) {
  test::MemoryWire& one = behind();
  read(one, 1, 60);
  test::MemoryWire& other = waiter();
  read(one, 1, 2);
  EXPECT_TRUE(origin(0).gone);
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(1, kEmpty);
  EXPECT_EQ(0U, other.outgoing.find("HTTP/1.1 200")) << other.outgoing;
  EXPECT_TRUE(was_cut(one)) << "the response looks whole";
}

TEST_F(ASlowReader, HasItsGraceWithAWaiterToo) {
  test::MemoryWire& one = behind();
  waiter();
  read(one, 1, 9);
  EXPECT_FALSE(origin(0).gone);
  read(one, 1, 2);
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASlowReader, AtTheMinimumRateIsNotEnded) {
  test::MemoryWire& one = behind();
  waiter();
  read(one, 500, 50);
  EXPECT_FALSE(origin(0).gone);
}

// The client sends its next request early: what it reads of the response before counts.
TEST_F(ASlowReader, IsNotOneThatStillReadsTheResponseBefore) {
  test::MemoryWire& one = asked();
  one.room = 0;
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, 'x'));
  send(one, kGetRequest);
  ASSERT_EQ(0U, dials());
  plane_.from_origin(0, std::string(kHead) + std::string(kPart, 'x'));
  waiter();
  read(one, 1000, 50);
  EXPECT_FALSE(origin(0).gone);
}

// Each byte is a chunk of its own, of which six bytes are framing.
TEST_F(ASlowReader, AcceptsTheFramingOfChunksToo) {
  test::MemoryWire& one = asked();
  one.room = 0;
  std::string chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t n = 0; n < kPart / 6; ++n) chunks += "1\r\nx\r\n";
  plane_.from_origin(0, chunks);
  waiter();
  read(one, 600, 50);
  EXPECT_FALSE(origin(0).gone);
}

TEST_F(ASlowReader, IsEndedByItsIdleTimeoutThoughNobodyWaits) {
  test::MemoryWire& one = behind();
  plane_.pass(59s);
  EXPECT_FALSE(one.gone);
  plane_.pass(2s);
  EXPECT_TRUE(was_cut(one));
}

TEST_F(ASlowReader, IsNotOneWhoseOriginIsSlow) {
  test::MemoryWire& one = asked();
  plane_.from_origin(0, kHead);
  waiter();
  for (int n = 0; n < 50; ++n) {
    plane_.pass(1s);
    plane_.from_origin(0, "x");
  }
  EXPECT_FALSE(origin(0).gone);
  EXPECT_FALSE(one.gone);
}

}  // namespace
}  // namespace carpool::proxy
