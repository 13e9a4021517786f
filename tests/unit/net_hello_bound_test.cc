// Unit tests of HelloBound, by hand and under OpenSSL: a ClientHello that announces more than it may ends the
// handshake.
#include "proxy/net/tls/hello_bound.h"

#include <sys/socket.h>

#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

std::string octets(std::size_t value, std::size_t count) {
  std::string out;
  while (count-- > 0) out += static_cast<char>(value >> (8 * count));
  return out;
}

std::string record_of(unsigned type, std::string_view content) {
  return octets(type, 1) + octets(0x0303, 2) + octets(content.size(), 2).append(content);
}

std::string announcing(std::size_t size, unsigned type = 1) {
  return octets(type, 1) + octets(size, 3);
}

constexpr unsigned kChange = 20, kWarning = 21, kMessages = 22, kData = 23;
constexpr std::size_t kMost = HelloBound::kMaxHello;
const std::string kHello = announcing(100) + std::string(100, 'h');
const std::string kLongHello = announcing(kMost + 1);

// Passes `bytes` in two parts.
bool accepts(const std::string& bytes, std::size_t cut, bool tls12 = false) {
  HelloBound bound;
  const std::span<const char> all(bytes);
  return bound.accept(all.first(cut), tls12) && bound.accept(all.subspan(cut), tls12);
}

// The result is the same wherever the bytes are cut.
bool accepts(const std::string& bytes, bool tls12 = false) {
  const bool whole = accepts(bytes, 0, tls12);
  for (std::size_t cut = 1; cut <= bytes.size(); ++cut) EXPECT_EQ(accepts(bytes, cut, tls12), whole) << cut;
  return whole;
}

TEST(HelloBound, Accepts_messages_up_to_its_limit) {
  EXPECT_TRUE(accepts(record_of(kMessages, announcing(kMost))));
  EXPECT_FALSE(accepts(record_of(kMessages, announcing(kMost + 1))));
  EXPECT_FALSE(accepts(record_of(kMessages, announcing(0xFF'FFFF))));
  EXPECT_TRUE(accepts(record_of(kMessages, kHello)));
}

TEST(HelloBound, Sees_the_length_in_any_record) {
  EXPECT_FALSE(accepts(record_of(kMessages, kHello) + record_of(kMessages, kLongHello)));
  EXPECT_FALSE(accepts(record_of(kMessages, kHello + kLongHello)));
  EXPECT_FALSE(accepts(record_of(kMessages, kLongHello.substr(0, 1)) + record_of(kMessages, kLongHello.substr(1))));
  EXPECT_FALSE(accepts(record_of(kWarning, "\x01\x29") + record_of(kMessages, kLongHello)));
}

TEST(HelloBound, Sees_a_second_hello_behind_a_change_of_ciphers_that_means_nothing) {
  const std::string change = record_of(kMessages, kHello) + record_of(kChange, "\x01");
  EXPECT_FALSE(accepts(change + record_of(kMessages, kLongHello)));
  EXPECT_TRUE(accepts(change + record_of(kMessages, kLongHello), true)) << "encrypted bytes look like anything";
}

TEST(HelloBound, Ends_with_the_first_other_message_or_encrypted_record) {
  EXPECT_TRUE(accepts(record_of(kMessages, kHello + announcing(kMost + 1, 11))));
  EXPECT_TRUE(accepts(record_of(kMessages, kHello + announcing(0, 16)) + record_of(kMessages, kLongHello)));
  const std::string data = record_of(kMessages, kHello) + record_of(kData, "x");
  EXPECT_TRUE(accepts(data + record_of(kMessages, kLongHello), true));
}

TEST(HelloBound, Sees_a_second_hello_behind_early_data) {
  const std::string early = record_of(kMessages, kHello) + record_of(kData, "x");
  EXPECT_FALSE(accepts(early + record_of(kMessages, kLongHello)));
  EXPECT_FALSE(accepts(early + record_of(kData, "more") + record_of(kMessages, kLongHello)));
}

TEST(HelloBound, Fails_the_handshake_of_a_server_with_the_reason) {
  const auto server = serve();
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  const auto ours = server->accept(std::move(here));
  const std::string bytes = record_of(kMessages, announcing(131'000) + "begin");
  ASSERT_EQ(::send(there.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  net::wait_readable(ours->fd());
  const Result<bool> done = ours->handshake();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.fault().detail, "TLS handshake: the ClientHello announces more than 17 KiB");
  EXPECT_FALSE(ours->peer_left());
}

}  // namespace
}  // namespace carpool::proxy::tls
