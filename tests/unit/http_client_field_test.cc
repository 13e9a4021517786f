// Unit tests of the values of X-Forwarded-For and Forwarded.
#include "proxy/http/client_field.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

std::string xff(std::string_view peer) {
  ClientFieldText text;
  return std::string(x_forwarded_for(peer, text));
}

std::string rfc7239(std::string_view peer, bool secured = false) {
  ClientFieldText text;
  return std::string(forwarded(peer, secured, text));
}

TEST(AClientField, NamesTheAddressWithoutItsPort) {
  EXPECT_EQ(xff("192.0.2.1:5000"), "192.0.2.1");
  EXPECT_EQ(xff("[2001:db8::1]:5000"), "2001:db8::1");
  EXPECT_EQ(rfc7239("192.0.2.1:5000"), "for=192.0.2.1;proto=http");
  EXPECT_EQ(rfc7239("[2001:db8::1]:5000", true), "for=\"[2001:db8::1]\";proto=https");
}

TEST(AClientField, LeavesTheZoneOut) {
  EXPECT_EQ(xff("[fe80::1%eth0]:5000"), "fe80::1");
}

TEST(AClientField, IsUnknownForAClientWithoutAnAddress) {
  for (const char* peer : {"", "unix:", "unix:/run/x.sock", "[::1", "a b:1", "1.2.3.4\r\nX: y:1", "[]:1", ":1"}) {
    EXPECT_EQ(xff(peer), "unknown") << peer;
  }
  EXPECT_EQ(xff("unix:/run/x.sock"), "unknown");
  EXPECT_EQ(xff(std::string(200, '1') + ":1"), "unknown");
  EXPECT_EQ(rfc7239(""), "for=unknown;proto=http");
}

TEST(AClientField, HoldsTheLongestAddress) {
  const std::string longest = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255";
  EXPECT_EQ(rfc7239("[" + longest + "]:65535", true), "for=\"[" + longest + "]\";proto=https");
}

}  // namespace
}  // namespace carpool::proxy::http
