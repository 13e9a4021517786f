// Unit tests of tunnels in which many bytes of the origin are spliced to the client's socket.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "proxy/net/io_limits.h"
#include "tests/unit/access_log_file.h"
#include "tests/unit/exchange_fixture.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using test::numbered;

constexpr std::string_view kConnect = "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n";
constexpr std::size_t kFlow = 1'000'000;

class ASplicedTunnel : public test::ExchangeFixture {
 protected:
  // A client with an open tunnel, whose 200 was read.
  test::MemoryWire& tunnelled() {
    test::MemoryWire& one = asked(kConnect);
    EXPECT_TRUE(one.outgoing.starts_with("HTTP/1.1 200 ")) << one.outgoing;
    one.outgoing.clear();
    return one;
  }
  const std::string flow_ = numbered(kFlow);
};

TEST_F(ASplicedTunnel, PassesAllBytesInOrder) {
  test::MemoryWire& one = tunnelled();
  plane_.from_origin(0, flow_);
  EXPECT_EQ(one.outgoing, flow_);
  EXPECT_GT(origin(0).spliced, kFlow / 2);
}

TEST_F(ASplicedTunnel, IsCopiedWhileItsPiecesAreSmall) {
  test::MemoryWire& one = tunnelled();
  for (std::size_t at = 0; at < kFlow; at += 20'000) plane_.from_origin(0, std::string_view(flow_).substr(at, 20'000));
  EXPECT_EQ(one.outgoing, flow_);
  EXPECT_EQ(origin(0).spliced, 0U);
}

TEST_F(ASplicedTunnel, IsCopiedAgainAfterASmallPiece) {
  test::MemoryWire& one = tunnelled();
  plane_.from_origin(0, flow_);
  plane_.from_origin(0, "small");
  const std::size_t before = origin(0).spliced;
  plane_.from_origin(0, "smaller");
  EXPECT_EQ(origin(0).spliced, before);
  EXPECT_EQ(one.outgoing, flow_ + "smallsmaller");
}

TEST_F(ASplicedTunnel, GoesOnBehindUrgentData) {
  test::MemoryWire& one = tunnelled();
  origin(0).urgent = 150'000;
  plane_.from_origin(0, flow_);
  EXPECT_EQ(one.outgoing, flow_);
}

TEST_F(ASplicedTunnel, DoesNotEndAtUrgentDataBehindWhichTheOriginHasEnded) {
  test::MemoryWire& one = tunnelled();
  origin(0).urgent = 150'000;
  plane_.from_origin(0, flow_, true);
  EXPECT_EQ(one.outgoing, flow_);
  EXPECT_TRUE(one.shut);
}

TEST_F(ASplicedTunnel, IsCopiedWhereTheSystemCannotSplice) {
  test::MemoryWire& one = tunnelled();
  origin(0).splice_error = EINVAL;
  plane_.from_origin(0, flow_);
  EXPECT_EQ(one.outgoing, flow_);
  EXPECT_EQ(origin(0).refusals, 1U);
}

TEST_F(ASplicedTunnel, GivesTheTurnToOthers) {
  test::MemoryWire& one = tunnelled();
  const std::string flow = numbered(std::size_t{4} << 20);
  exec::assume_on_loop();
  Connection& connection = *plane_.environment.connections.at(0);
  origin(0).incoming.append(flow);
  connection.transport().on_readiness({.readable = true});
  connection.events->on_upstream_ready();
  EXPECT_GE(one.outgoing.size(), kTurnBytes);
  EXPECT_LT(one.outgoing.size(), 2 * kTurnBytes);
  plane_.turn();
  EXPECT_EQ(one.outgoing, flow);
}

TEST_F(ASplicedTunnel, WaitsForAClientThatDoesNotReadAndHoldsLittle) {
  test::MemoryWire& one = tunnelled();
  one.room = 1000;
  plane_.from_origin(0, flow_);
  EXPECT_GE(origin(0).incoming.size(), kFlow - 300'000) << "the bytes that carpool holds";
  for (int n = 0; n < 2000 && one.outgoing.size() < kFlow; ++n) {
    make_room(one, 1 + static_cast<std::size_t>(n * 37 % 90'000));
    plane_.from_origin(0, "");
  }
  EXPECT_EQ(one.outgoing, flow_);
}

TEST_F(ASplicedTunnel, PassesItsEndBehindTheLastByte) {
  test::MemoryWire& one = tunnelled();
  plane_.from_origin(0, flow_, true);
  EXPECT_EQ(one.outgoing, flow_);
  EXPECT_TRUE(one.shut);
  EXPECT_FALSE(one.gone) << "the client may still send";
  send(one, "bye", true);
  EXPECT_TRUE(has(origin(0).outgoing, "bye"));
  EXPECT_TRUE(origin(0).gone);
}

TEST_F(ASplicedTunnel, OfAnOriginThatResetsEndsVisibly) {
  test::MemoryWire& one = tunnelled();
  plane_.from_origin(0, flow_.substr(0, 500'000));
  origin(0).splice_error = ECONNRESET;
  plane_.from_origin(0, flow_.substr(500'000));
  EXPECT_EQ(one.outgoing, flow_.substr(0, 500'000));
  EXPECT_TRUE(origin(0).gone);
  exec::assume_on_loop();
  clients_.end_all();
  EXPECT_TRUE(one.gone && one.cut) << "an orderly end would look like the end of the flow";
}

TEST_F(ASplicedTunnel, CountsInTheAccessLog) {
  test::AccessLogFile log;
  test::MemoryWire& one = tunnelled();
  plane_.from_origin(0, flow_, true);
  send(one, "", true);
  plane_.pass(1s);  // lines are collected for less than that
  const std::string said = log.text();
  EXPECT_TRUE(has(said, "\"bytes_out\":1000000,")) << said;
}

}  // namespace
}  // namespace carpool::proxy
