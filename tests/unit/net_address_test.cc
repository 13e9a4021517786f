#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {
namespace {

TEST(Address, IsWrittenAsItIsRead) {
  for (const char* text : {"127.0.0.1:80", "[::1]:8080", "0.0.0.0:0", "[2001:db8::7]:443", "unix:/run/x.sock"}) {
    EXPECT_EQ(address(text).text(), text);
  }
}

TEST(Address, RefusesNamesAndHalfAddresses) {
  for (const char* text : {"localhost:80", "127.0.0.1", "::1:80", "[127.0.0.1]:80", "1.2.3.4:65536", "1.2.3.4:", ":80",
                           "unix:", "", "1.2.3.4:80 ", "[::1]80"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse("unix:/" + std::string(107, 'x')));
}

TEST(Address, ReadsLiteralsAsAnOriginSpellsThem) {
  EXPECT_EQ(Address::literal("::1", 80)->text(), "[::1]:80");
  EXPECT_EQ(Address::literal("[::1]", 80)->text(), "[::1]:80");
  EXPECT_EQ(Address::literal("10.0.0.1", 80)->host(), "10.0.0.1");
  EXPECT_FALSE(Address::literal("example.com", 80));
  EXPECT_FALSE(Address::literal("", 80));
  EXPECT_FALSE(Address::literal(std::string_view("10.0.0.1\0.example.com", 21), 80));
}

TEST(Address, KnowsItsKind) {
  EXPECT_TRUE(address("127.8.9.1:1").loopback());
  EXPECT_TRUE(address("[::1]:1").loopback());
  EXPECT_TRUE(address("[::ffff:127.0.0.1]:1").loopback());
  EXPECT_FALSE(address("128.0.0.1:1").loopback());
  EXPECT_TRUE(address("0.0.0.0:1").wildcard());
  EXPECT_TRUE(address("[::]:1").wildcard());
  EXPECT_TRUE(address("[::ffff:0.0.0.0]:1").wildcard());
  EXPECT_FALSE(address("unix:/x").wildcard());
}

TEST(Address, ComparesMappedAddressesAsIpv4) {
  EXPECT_TRUE(address("[::ffff:10.0.0.1]:1").same_host(address("10.0.0.1:2")));
  EXPECT_FALSE(address("10.0.0.1:1").same_host(address("10.0.0.2:1")));
  EXPECT_FALSE(address("[::1]:1").same_host(address("127.0.0.1:1")));
  EXPECT_TRUE(address("unix:/a").same_host(address("unix:/a")));
  EXPECT_FALSE(address("unix:/a").same_host(address("unix:/b")));
}

Address on_interface(const char* host, std::uint32_t interface) {
  sockaddr_in6 in6{};
  std::memcpy(&in6, Address::literal(host, 80)->get(), sizeof in6);
  in6.sin6_scope_id = interface;
  return {reinterpret_cast<const sockaddr*>(&in6), sizeof in6};
}

TEST(Address, OfALinkLocalHostDiffersByTheInterfaceAndOfAnyOtherHostDoesNot) {
  EXPECT_EQ(on_interface("fe80::1", 1), on_interface("fe80::1", 1));
  EXPECT_FALSE(on_interface("fe80::1", 1) == on_interface("fe80::1", 2));
  EXPECT_TRUE(on_interface("fe80::1", 1).same_host(on_interface("fe80::1", 2)));
  EXPECT_EQ(on_interface("2001:db8::1", 1), address("[2001:db8::1]:80"));
}

TEST(Address, ChangesItsPortAlone) {
  EXPECT_EQ(address("[::1]:1").with_port(443).text(), "[::1]:443");
  EXPECT_EQ(address("10.0.0.1:0").with_port(80), address("10.0.0.1:80"));
}

}  // namespace
}  // namespace carpool::proxy::net
