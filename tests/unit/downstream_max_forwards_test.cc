// Unit tests of Max-Forwards: counted down by one, and answered at zero.
#include <gtest/gtest.h>

#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

class MaxForwards : public test::ExchangeFixture {
 protected:
  static std::string options(std::string_view value) {
    return "OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: " + std::string(value) + "\r\n\r\n";
  }
};

TEST_F(MaxForwards, IsCountedDownFromAnyNumber) {
  test::MemoryWire& one = client();
  constexpr std::pair<std::string_view, std::string_view> kCounted[] = {
      {"1", "0"}, {"3", "2"}, {"4294967296", "999"}, {"1000000000000000000000000000000", "999"}};
  for (const auto& [value, counted] : kCounted) {
    send(one, options(value));
    if (dials() != 0) connect();
    EXPECT_TRUE(has(origin(0).outgoing, "Max-Forwards: " + std::string(counted) + "\r\n")) << origin(0).outgoing;
    origin(0).outgoing.clear();
    plane_.from_origin(0, test::kEmpty);
  }
}

TEST_F(MaxForwards, IsForwardedAsItIsIfItIsNoNumber) {
  asked(options("4294967296x"));
  EXPECT_TRUE(has(origin(0).outgoing, "Max-Forwards: 4294967296x\r\n")) << origin(0).outgoing;
}

TEST_F(MaxForwards, ReflectsTheHeadAsItArrivedWithItsVersion) {
  for (const std::string_view version : {"HTTP/1.0", "HTTP/1.1"}) {
    test::MemoryWire& one = client();
    send(one, "TRACE http://a.test/ " + std::string(version) +
                  "\r\nHost: a.test\r\nCookie: secret\r\nMax-Forwards: 0\r\n\r\n");
    EXPECT_TRUE(one.outgoing.ends_with("TRACE http://a.test/ " + std::string(version) +
                                       "\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n"))
        << one.outgoing;
  }
  EXPECT_EQ(0U, dials());
}

TEST_F(MaxForwards, AnnouncesWhetherTheConnectionPersists) {
  test::MemoryWire& one = client();
  send(one, options("0"));
  EXPECT_TRUE(has(one.outgoing, "\r\nConnection: keep-alive\r\nKeep-Alive: timeout=")) << one.outgoing;
  test::MemoryWire& old = client();
  send(old, "OPTIONS http://a.test/ HTTP/1.0\r\nConnection: keep-alive\r\nMax-Forwards: 0\r\n\r\n");
  EXPECT_TRUE(has(old.outgoing, "\r\nConnection: close\r\n")) << old.outgoing;
}

TEST_F(MaxForwards, HasTheDateOfTheWallClock) {
  test::MemoryWire& one = client();
  send(one, options("0"));
  EXPECT_TRUE(has(one.outgoing, "\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n")) << one.outgoing;
}

}  // namespace
}  // namespace carpool::proxy
