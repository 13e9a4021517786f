#include "proxy/net/proxy_header.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::net {
namespace {

using State = ProxyHeader::State;

const std::string kText = "PROXY TCP4 203.0.113.9 10.0.0.1 4711 80\r\n";
const std::string kBinary("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\x0a\0\0\x01\x12\x67\0\x50", 28);

TEST(ProxyHeaderTest, NamesTheClientInBothVersions) {
  for (const std::string& bytes : {kText, kBinary}) {
    const ProxyHeader header = read_proxy_header(bytes + "GET / HTTP/1.1\r\n");
    ASSERT_EQ(header.state, State::complete);
    EXPECT_EQ(header.size, bytes.size());
    ASSERT_TRUE(header.client);
    EXPECT_EQ(header.client->text(), "203.0.113.9:4711");
  }
}

TEST(ProxyHeaderTest, WaitsForTheRestOfEveryPrefix) {
  for (const std::string& bytes : {kText, kBinary}) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(read_proxy_header(bytes.substr(0, size)).state, State::incomplete) << size;
    }
  }
}

TEST(ProxyHeaderTest, TakesNothingBehindItForTheHeader) {
  for (const std::string& bytes : {kText, kBinary}) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const char other : {'\0', '\n', ' ', 'A', '\xff'}) {
        std::string changed = bytes;
        changed[at] = other;
        const ProxyHeader header = read_proxy_header(changed + std::string(100, 'x'));
        EXPECT_LE(header.size, ProxyHeader::kMaxSize);
        EXPECT_FALSE(header.state == State::malformed && header.client) << at;
      }
    }
  }
}

TEST(ProxyHeaderTest, RefusesWhatIsLongerThanAnyHeader) {
  EXPECT_EQ(read_proxy_header("PROXY " + std::string(101, '1')).state, State::malformed);
  std::string long_one = kBinary;
  long_one[14] = '\x7f';
  EXPECT_EQ(read_proxy_header(long_one).state, State::malformed);
}

TEST(ProxyHeaderTest, NamesAClientOfVersion6InBothVersions) {
  std::string binary = kBinary.substr(0, 12) + std::string("\x21\x21\0\x24", 4);
  binary.append("\x20\x01\x0d\xb8").append(11, '\0').append(1, '\x09').append(15, '\0').append(1, '\x01');
  binary.append(std::string("\x12\x67\0\x50", 4));
  for (const std::string& bytes : {std::string("PROXY TCP6 2001:db8::9 ::1 4711 80\r\n"), binary}) {
    const ProxyHeader header = read_proxy_header(bytes);
    ASSERT_EQ(header.state, State::complete);
    ASSERT_TRUE(header.client);
    EXPECT_EQ(header.client->text(), "[2001:db8::9]:4711");
  }
}

TEST(ProxyHeaderTest, NamesNobodyForAnUnknownClientAndForTheLoadBalancersOwnConnection) {
  std::string own = kBinary;
  own[12] = '\x20';
  for (const std::string& bytes : {std::string("PROXY UNKNOWN\r\n"), std::string("PROXY UNKNOWN a b c\r\n"), own}) {
    const ProxyHeader header = read_proxy_header(bytes);
    ASSERT_EQ(header.state, State::complete) << bytes;
    EXPECT_EQ(header.size, bytes.size());
    EXPECT_FALSE(header.client);
  }
}

TEST(ProxyHeaderTest, RefusesWhatDiffersFromTheGrammar) {
  for (const std::string_view line :
       {"TCP4 203.0.113.9 10.0.0.1 4711x 80", "TCP4 203.0.113.9 10.0.0.1 4711 80x",
        "TCP4 203.0.113.9 10.0.0.1 4711 80 9", "TCP4  203.0.113.9 10.0.0.1 4711 80", "TCP4 203.0.113.9 10.0.0.1 4711",
        "TCP4 203.0.113.9 10.0.0.1 65536 80", "TCP6 203.0.113.9 ::1 4711 80", "TCP6 2001:db8::9 10.0.0.1 4711 80",
        "TCP5 203.0.113.9 10.0.0.1 4711 80", "TCP6 [2001:db8::9] ::1 4711 80", "TCP6 2001:db8::9 [::1] 4711 80",
        "TCP6 fe80::1%lo ::1 4711 80"}) {
    EXPECT_EQ(read_proxy_header("PROXY " + std::string(line) + "\r\n").state, State::malformed) << line;
  }
  const std::string nul("PROXY TCP4 203.0.113.9\0 10.0.0.1 4711 80\r\n", 42);
  EXPECT_EQ(read_proxy_header(nul).state, State::malformed);
  // version 3, a third command, an address of version 4 and of version 6 that are too short
  for (const std::string_view kind : {"\x31\x11\0\x0c", "\x22\x11\0\x0c", "\x21\x11\0\x0b", "\x21\x21\0\x0c"}) {
    std::string bytes = kBinary;
    for (std::size_t at = 0; at < 4; ++at) bytes[12 + at] = kind.data()[at];
    EXPECT_EQ(read_proxy_header(bytes).state, State::malformed) << static_cast<int>(kind.data()[1]);
  }
}

}  // namespace
}  // namespace carpool::proxy::net
