// Unit tests of HTTP/2 clients that read their responses slowly: only reading is progress.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/net/io_limits.h"
#include "tests/unit/exchange_fixture.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWhole = 300'000;
constexpr std::uint32_t kOpen = 1 << 24;     // a window for any response of these tests
constexpr std::uint32_t kUsual = 65'535;     // the initial window of a stream
constexpr std::size_t kFewBytes = 8 * 1024;  // that the client reads at a time

// A client of HTTP/2. Both idle timeouts are 20 seconds.
class AReaderOfHttp2 : public test::ExchangeFixture {
 protected:
  AReaderOfHttp2() : ExchangeFixture(impatient()) {
    plane_.listen.idle_timeout = 20s;
    plane_.listener.change(plane_.listen);
  }
  explicit AReaderOfHttp2(config::Config settings) : ExchangeFixture(std::move(settings)) {
    plane_.listen.body_grace = 10s;
    plane_.listener.change(plane_.listen);
  }
  // A client that has sent its preface, this initial window of its streams and these frames.
  test::MemoryWire& connected(std::uint32_t window, const std::string& frames) {
    test::MemoryWire& one = client();
    send(one, http::kH2Preface);
    send(one, http::frame(4, 0, 0, std::string("\0\x04", 2) + http::number(window)) + frames);
    while (dials() != 0) connect();
    return one;
  }
  static std::string opened(unsigned stream) { return http::frame(8, 0, stream, http::number(kOpen)); }
  static std::string response(std::size_t size) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" + std::string(size, 'x');
  }
  // The bytes of a response that the client received, if its end is among them; 0: it is not.
  static std::size_t received_whole(const test::MemoryWire& one, unsigned stream) {
    std::size_t bytes = 0;
    bool ended = false;
    for (const http::Frame& frame : http::frames(one.outgoing)) {
      if (frame.type != 0 || frame.stream != stream) continue;
      bytes += frame.payload.size();
      ended |= (frame.flags & http::kEndStream) != 0;
    }
    return ended ? bytes : 0;
  }
  // The client reads a few bytes within each idle timeout.
  void read_slowly(test::MemoryWire& one, std::size_t bytes) {
    for (std::size_t read = 0; read < bytes; read += kFewBytes) {
      plane_.pass(15s);
      make_room(one, kFewBytes);
    }
  }

 private:
  static config::Config impatient() {
    config::Config settings;
    settings.request.idle_timeout = 20s;
    return settings;
  }
};

// The last part waits in the session and in the write queue after its exchange has ended.
TEST_F(AReaderOfHttp2, ReceivesAWholeResponseThatTakesLongerThanItsIdleTimeout) {
  test::MemoryWire& one = connected(kOpen, opened(0) + http::headers(1, http::get()));
  one.room = 0;
  plane_.from_origin(0, response(kWhole));
  read_slowly(one, kWhole + 8 * kFewBytes);
  EXPECT_EQ(kWhole, received_whole(one, 1));
  EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
}

// The rest of the response waits for the window of the connection, which never opens; no exchange waits.
TEST_F(AReaderOfHttp2, IsEndedWhenItsWindowStaysClosedThoughItsPingsAreAnswered) {
  test::MemoryWire& one = connected(kOpen, http::headers(1, http::get()));
  plane_.from_origin(0, response(100'000));
  plane_.pass(15s);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0));
  send(one, http::frame(6, 0, 0, "12345678"));
  EXPECT_TRUE(has(one.outgoing, http::frame(6, 1, 0, "12345678"))) << "PING is not acknowledged";
  plane_.pass(15s);
  EXPECT_EQ(11, http::error_of(one.outgoing, 0)) << "ENHANCE_YOUR_CALM";
}

// The client reads the other stream, which proves nothing about one whose window is closed.
TEST_F(AReaderOfHttp2, LosesTheStreamAloneWhoseWindowItDoesNotOpen) {
  test::MemoryWire& one =
      connected(kUsual, opened(0) + http::headers(1, http::get("/1")) + http::headers(3, http::get("/2")) + opened(3));
  ASSERT_EQ(2U, plane_.environment.connections.size());
  one.room = 0;
  plane_.from_origin(0, response(kWhole));
  plane_.from_origin(1, response(kWhole));
  read_slowly(one, 2 * kWhole);
  EXPECT_NE(-1, http::error_of(one.outgoing, 1));
  EXPECT_EQ(0U, received_whole(one, 1));
  EXPECT_EQ(-1, http::error_of(one.outgoing, 3));
  EXPECT_EQ(kWhole, received_whole(one, 3));
}

// Another stream waits for its origin, for longer than a connection without a request may last.
TEST_F(AReaderOfHttp2, LosesNoOtherStreamToTheIdleTimeoutOfItsConnection) {
  plane_.listen.idle_timeout = 5s;
  plane_.listener.change(plane_.listen);
  test::MemoryWire& one =
      connected(kUsual, opened(0) + http::headers(1, http::get("/1")) + http::headers(3, http::get("/2")));
  ASSERT_EQ(2U, plane_.environment.connections.size());
  plane_.from_origin(0, response(kWhole));
  plane_.pass(10s);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0)) << "GOAWAY";
  EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
  for (int n = 0; n < 3; ++n) plane_.pass(10s);
  EXPECT_NE(-1, http::error_of(one.outgoing, 1)) << "request.idle_timeout";
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0)) << "GOAWAY";
  plane_.from_origin(1, response(1));
  EXPECT_EQ(1U, received_whole(one, 3));
}

// The response is complete here, so no exchange and no deadline of one waits for its window.
TEST_F(AReaderOfHttp2, LosesNoOtherStreamToAWholeResponseForWhichItOpensNoWindow) {
  test::MemoryWire& one = connected(10, http::headers(1, http::get("/1")) + http::headers(3, http::get("/2")));
  ASSERT_EQ(2U, plane_.environment.connections.size());
  plane_.from_origin(0, response(1000));
  plane_.pass(15s);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
  plane_.pass(10s);
  EXPECT_NE(-1, http::error_of(one.outgoing, 1));
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0)) << "GOAWAY";
  plane_.from_origin(1, response(1));
  EXPECT_EQ(1U, received_whole(one, 3));
}

// AReaderThatOthersWaitFor: each origin has one connection.
class AReaderThatOthersWaitFor : public AReaderOfHttp2 {
 protected:
  AReaderThatOthersWaitFor() : AReaderOfHttp2(one_connection()) {}

 private:
  static config::Config one_connection() {
    config::Config settings;
    settings.pool.size = 1;
    settings.pool.wait_timeout = 600s;
    return settings;
  }
};

// The client reads one stream, and fills the session's buffers with others that it does not read.
TEST_F(AReaderThatOthersWaitFor, IsNotMeasuredByItsOtherStreams) {
  constexpr unsigned kOthers = 10, kTrickle = 2000;
  test::MemoryWire& one = connected(0, opened(0) + http::headers(1, http::get()));
  const auto read_for = [&](int seconds) {
    for (int n = 0; n < seconds && !origin(0).gone; ++n) {
      plane_.pass(1s);
      send(one, http::frame(8, 0, 1, http::number(kTrickle)));
      plane_.from_origin(0, std::string(kTrickle, 'x'));
    }
  };
  plane_.from_origin(0, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + std::string(4 * kTrickle, 'x'));
  send(client(), test::kGetRequest);
  read_for(20);
  ASSERT_FALSE(origin(0).gone);
  for (unsigned n = 0; n < kOthers; ++n) {
    const std::string host = "other" + std::to_string(n) + ".test";
    http::List_ other = http::get();
    other[2].second = host;
    send(one, http::headers(3 + 2 * n, other));
    ASSERT_EQ(1U, dials());
    connect();
    plane_.from_origin(1 + n, response(kWhole));
  }
  read_for(40);
  EXPECT_FALSE(origin(0).gone);
  EXPECT_EQ(-1, http::error_of(one.outgoing, 1));
}

// The responses are in the write queue, and no stream is open.
TEST_F(AReaderOfHttp2, IsCountedWhenItsSocketStaysFull) {
  test::MemoryWire& one = connected(kOpen, http::headers(1, http::get()));
  one.room = 0;
  plane_.from_origin(0, response(1000));
  plane_.pass(25s);
  EXPECT_EQ(1U, plane_.registry.abuse_count(metrics::kAbuses.size() - 1)) << "unread";
}

// Another request runs, and nothing can be sent for it.
TEST_F(AReaderOfHttp2, IsCountedWhenItsSocketStaysFullBesideARunningRequest) {
  test::MemoryWire& one = connected(kOpen, http::headers(1, http::get("/1")) + http::headers(3, http::get("/2")));
  one.room = 0;
  plane_.from_origin(0, response(1000));
  plane_.pass(25s);
  EXPECT_EQ(1U, plane_.registry.abuse_count(metrics::kAbuses.size() - 1)) << "unread";
}

// A client whose socket and windows are open, and an origin whose whole response has arrived.
TEST_F(AReaderOfHttp2, ReceivesAShareOfALongResponseInOneTurnAndTheRestInOthers) {
  exec::assume_on_loop();
  constexpr std::size_t kLong = std::size_t{4} << 20;
  test::MemoryWire& one = connected(kOpen, opened(0) + http::headers(1, http::get()));
  one.room = 0;
  plane_.from_origin(0, response(kLong));
  clients_.make_room(one, SIZE_MAX);
  EXPECT_LT(kTurnBytes, one.outgoing.size());
  EXPECT_GT(3 * kTurnBytes, one.outgoing.size());
  plane_.turn();
  EXPECT_EQ(kLong, received_whole(one, 1));
}

}  // namespace
}  // namespace carpool::proxy
