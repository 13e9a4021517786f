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

}  // namespace
}  // namespace carpool::proxy::net
