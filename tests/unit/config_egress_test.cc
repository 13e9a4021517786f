// Unit tests of egress patterns: names before resolution, networks after it.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proxy/config/egress_rule.h"

namespace carpool::proxy::config {
namespace {

std::array<std::uint8_t, 16> bytes(const std::string& text) {
  std::array<std::uint8_t, 16> out{};
  const std::string v6 = text.find(':') == std::string::npos ? "::ffff:" + text : text;
  EXPECT_EQ(inet_pton(AF_INET6, v6.c_str(), out.data()), 1) << text;
  return out;
}

EgressRule rule(std::string_view pattern) {
  auto parsed = EgressRule::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed ? *parsed : EgressRule{};
}

TEST(EgressRule, MatchesNamesWholeOrBelow) {
  EXPECT_TRUE(rule("Example.COM.").matches_name("example.com", 80));
  EXPECT_FALSE(rule("example.com").matches_name("www.example.com", 80));
  EXPECT_TRUE(rule("*.example.com").matches_name("www.example.com", 80));
  EXPECT_TRUE(rule("*.example.com").matches_name("a.b.example.com", 80));
  EXPECT_FALSE(rule("*.example.com").matches_name("example.com", 80));
  EXPECT_FALSE(rule("*.example.com").matches_name("badexample.com", 80));
  EXPECT_FALSE(rule("*.example.com").matches_name(".example.com", 80));
  EXPECT_TRUE(rule("*").matches_name("anything", 1));
  EXPECT_FALSE(rule("10.0.0.0/8").matches_name("10.0.0.1", 80));
}

TEST(EgressRule, MatchesThePortItNames) {
  EXPECT_TRUE(rule("example.com:443").matches_name("example.com", 443));
  EXPECT_FALSE(rule("example.com:443").matches_name("example.com", 80));
  EXPECT_TRUE(rule("*:443").matches_name("x", 443));
  EXPECT_FALSE(rule("*:443").matches_address(bytes("1.2.3.4"), 80));
  EXPECT_TRUE(rule("10.0.0.0/8:80").matches_address(bytes("10.1.2.3"), 80));
  EXPECT_FALSE(rule("10.0.0.0/8:80").matches_address(bytes("10.1.2.3"), 81));
  EXPECT_TRUE(rule("[fd00::]/8:80").matches_address(bytes("fd12::1"), 80));
  EXPECT_TRUE(rule("[::1]:80").matches_address(bytes("::1"), 80));
}

TEST(EgressRule, MatchesNetworksByTheirPrefix) {
  EXPECT_TRUE(rule("169.254.0.0/16").matches_address(bytes("169.254.169.254"), 80));
  EXPECT_TRUE(rule("169.254.0.0/16").matches_address(bytes("::ffff:169.254.1.1"), 80));
  EXPECT_FALSE(rule("169.254.0.0/16").matches_address(bytes("169.255.0.1"), 80));
  EXPECT_TRUE(rule("10.0.0.0/9").matches_address(bytes("10.127.0.1"), 80));
  EXPECT_FALSE(rule("10.0.0.0/9").matches_address(bytes("10.128.0.1"), 80));
  EXPECT_TRUE(rule("1.2.3.4").matches_address(bytes("1.2.3.4"), 80));
  EXPECT_FALSE(rule("1.2.3.4").matches_address(bytes("1.2.3.5"), 80));
  EXPECT_TRUE(rule("fd00:ec2::254").matches_address(bytes("fd00:ec2::254"), 80));
  EXPECT_FALSE(rule("fd00:ec2::254").matches_address(bytes("fd00:ec2::255"), 80));
  EXPECT_TRUE(rule("0.0.0.0/0").matches_address(bytes("8.8.8.8"), 80));
  EXPECT_FALSE(rule("0.0.0.0/0").matches_address(bytes("2001:db8::1"), 80));
  EXPECT_TRUE(rule("::/0").matches_address(bytes("2001:db8::1"), 80));
  EXPECT_FALSE(rule("::/0").matches_address(bytes("8.8.8.8"), 80));
  EXPECT_FALSE(rule("example.com").matches_address(bytes("8.8.8.8"), 80));
}

TEST(EgressRule, RejectsTextThatIsNoRule) {
  for (const auto pattern :
       {"",          ":80",         "a.*.com", "*a.com",    "**",          "*.",        "a:0",
        "a:65536",   "a:x",         "a:",      "http://a",  "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x",
        "10.0.0/8",  "fd00::/129",  "a/8",     "[1.2.3.4]", "[::1",        "127.1",     "2130706433",
        "010.0.0.1", "1.2.3.4/8/8", "a b",     "u@a",       "*.1.2.3.4"}) {
    EXPECT_FALSE(EgressRule::parse(pattern)) << pattern;
  }
}

}  // namespace
}  // namespace carpool::proxy::config
