// Unit tests of HTTP/2 clients: which requests begin within a read, and with what.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/exchange_fixture.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy {
namespace {

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
  for (unsigned n = 0; n < 40; ++n) many += http::headers(2 * n + 1, post(), false) + http::data(2 * n + 1, "x");
  read(one, many);
  EXPECT_GE(std::size_t{RequestPacer::kClientRequests}, dials());
  plane_.turn();
  EXPECT_LT(std::size_t{RequestPacer::kClientRequests}, dials());
}

TEST_F(AClientOfHttp2, PassesOnWhatFollowsItsHeadInTheSameRead) {
  test::MemoryWire& one = ready();
  send(one, http::headers(1, post(), false) + http::data(1, "some ", false) + http::data(1, "bytes", false) +
                http::headers(1, {{"x-trailer", "1"}}));
  ASSERT_EQ(1U, dials());
  connect();
  plane_.from_origin(0, kEmpty);
  EXPECT_TRUE(has(origin(0).outgoing, "some bytes"));
  EXPECT_TRUE(has(origin(0).outgoing, "x-trailer: 1\r\n\r\n"));
  EXPECT_EQ(1U, idle()) << "the request was sent whole";
}

// The windows of a body that arrived early are given back.
TEST_F(AClientOfHttp2, GetsTheRoomOfABodyBackThatFollowsItsHead) {
  test::MemoryWire& one = ready();
  const std::string piece(16'000, 'x');
  std::string body;
  for (int n = 0; n < 6; ++n) body += http::data(1, piece, false);
  send(one, http::headers(1, post(), false) + body);
  connect();
  plane_.from_origin(0, "");
  one.outgoing.clear();
  std::size_t sent = 6;
  for (; sent < 40 && http::error_of(one.outgoing, 1) == -1; ++sent) send(one, http::data(1, piece, false));
  EXPECT_EQ(-1, http::error_of(one.outgoing, 0));
  EXPECT_EQ(40U, sent);
}

}  // namespace
}  // namespace carpool::proxy
