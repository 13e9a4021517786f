#include "proxy/net/parent_tunnel.h"

#include <tuple>
#include <vector>

#include "proxy/net/parent_proxy.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

// `here` is carpool's end, `there` the proxy's.
struct ParentTunnelTest : ::testing::Test {
  ParentTunnelTest() { std::tie(here, there) = tcp_pair(); }
  // Returns the tunnel's result for a response that is complete before it is read.
  Result<bool> answered(std::string_view bytes, bool hangup = false) {
    EXPECT_EQ(::send(there.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    if (!bytes.empty()) wait_readable(here.get());
    return tunnel.step(here.get(), memory, hangup);
  }
  std::string left() {
    std::array<char, 100> bytes{};
    const ssize_t received = ::recv(here.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return {bytes.data(), received < 0 ? 0 : static_cast<std::size_t>(received)};
  }

  Fd here, there;
  const ParentProxy parent{*pool::parse_origin("http://proxy.test:3128"), "Basic cG9vbDpzM2NyZXQ="};
  const pool::Origin origin = *pool::parse_origin("https://api.test");
  ParentTunnel tunnel{parent, origin, "1.1 carpool-test"};
  std::vector<char> memory = std::vector<char>(std::size_t{64} * 1024);
};

TEST_F(ParentTunnelTest, AsksForTheOriginWithTheCredentials) {
  const Result<bool> open = tunnel.step(here.get(), memory, false);
  ASSERT_TRUE(open);
  EXPECT_FALSE(*open);
  std::array<char, 500> bytes{};
  ASSERT_TRUE(wait_readable(there.get()));
  const ssize_t received = ::recv(there.get(), bytes.data(), bytes.size(), 0);
  EXPECT_EQ(std::string_view(bytes.data(), static_cast<std::size_t>(received)),
            "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic cG9vbDpzM2NyZXQ=\r\n"
            "Via: 1.1 carpool-test\r\n\r\n");
}

TEST_F(ParentTunnelTest, LeavesTheBytesBehindTheHeadInTheSocket) {
  const Result<bool> open = answered("HTTP/1.1 200 Connected\r\nX: y\r\n\r\nthe origin's");
  ASSERT_TRUE(open) << open.fault().detail;
  EXPECT_TRUE(*open);
  EXPECT_EQ(left(), "the origin's");
}

TEST_F(ParentTunnelTest, WaitsForTheRestOfAHeadAndSkipsInformationalOnes) {
  for (const std::string_view part : {"HTTP/1.1 103 Ear", "ly\r\n\r\n", "HTTP/1.0 20", "0\n"}) {
    const Result<bool> open = answered(part);
    ASSERT_TRUE(open) << open.fault().detail;
    EXPECT_FALSE(*open) << part;
  }
  const Result<bool> open = answered("\n");
  EXPECT_TRUE(open && *open);
  EXPECT_EQ(tunnel.status(), 200);
}

TEST_F(ParentTunnelTest, RejectsBytesThatAreNoResponse) {
  for (const std::string_view bytes :
       {"SSH-2.0-x\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.x 200 x\r\n\r\n", "HTTP/1.1 +20 x\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n", "HTTP/1.1 302 x\r\n\r\n"}) {
    std::tie(here, there) = tcp_pair();
    const Result<bool> open = answered(bytes);
    ASSERT_FALSE(open) << bytes;
    EXPECT_EQ(open.fault().kind, FaultKind::parent_refused);
  }
}

TEST_F(ParentTunnelTest, PassesOnThatTheProxyHasSeenTheRequestBefore) {
  const Result<bool> open = answered("HTTP/1.1 508 Loop Detected\r\n\r\n");
  ASSERT_FALSE(open);
  EXPECT_EQ(open.fault().kind, FaultKind::loop_detected);
  EXPECT_EQ(open.fault().side, Side::upstream) << "no rule of this proxy refuses the origin";
}

TEST_F(ParentTunnelTest, BoundsTheHeadAndTheInformationalOnes) {
  EXPECT_FALSE(answered("HTTP/1.1 200 x\r\nX: " + std::string(std::size_t{20} * 1024, 'x')));
  std::tie(here, there) = tcp_pair();
  std::string many;
  for (int i = 0; i < 9; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_FALSE(answered(many));
}

TEST_F(ParentTunnelTest, EndsAtOnceIfTheProxyClosesWithinItsHead) {
  const Result<bool> partly = answered("HTTP/1.1 20", true);
  ASSERT_FALSE(partly);
  EXPECT_NE(partly.fault().detail.find("closed the connection within its answer"), std::string::npos);
  std::tie(here, there) = tcp_pair();
  ::shutdown(there.get(), SHUT_WR);
  wait_readable(here.get());
  EXPECT_FALSE(tunnel.step(here.get(), memory, true));
}

TEST_F(ParentTunnelTest, ReportsTheRefusalWithoutCredentialsAndControlCharacters) {
  const Result<bool> open = answered("HTTP/1.1 407 \"no\x1b[2J" + std::string(500, 'x') + "\r\n\r\n");
  ASSERT_FALSE(open);
  const std::string& detail = open.fault().detail;
  EXPECT_NE(detail.find("answered CONNECT api.test:443 with 407 ?no?[2Jxxx"), std::string::npos) << detail;
  EXPECT_NE(detail.find("does not accept upstream.proxy_credentials"), std::string::npos) << detail;
  EXPECT_EQ(detail.find("cG9vbDpzM2NyZXQ"), std::string::npos);
  EXPECT_LT(detail.size(), 300U);
}

}  // namespace
}  // namespace carpool::proxy::net
