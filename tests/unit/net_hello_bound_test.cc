// Unit tests of HelloBound, by hand and under OpenSSL: a ClientHello that announces more than it may ends the
// handshake.
#include "proxy/net/tls/hello_bound.h"

#include <sys/socket.h>

#include "proxy/net/tls/openssl.h"
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
  for (const std::size_t size : {0x1'0000U, 0x1'0064U, 0xFF'0000U, 0xFF'FFFFU}) {
    EXPECT_FALSE(accepts(record_of(kMessages, announcing(size)))) << size;
  }
  EXPECT_TRUE(accepts(record_of(kMessages, kHello)));
}

TEST(HelloBound, Sees_the_length_in_any_record) {
  const std::string hello = announcing(1000) + std::string(1000, 'h');
  EXPECT_FALSE(accepts(record_of(kMessages, hello) + record_of(kMessages, kLongHello)));
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

// A client of OpenSSL that has sent its first flight of a handshake; the test decides what follows.
struct BegunClient {
  BegunClient(ServerContext& server, SSL_CTX* context) : ssl(SSL_new(context)) {
    auto [here, there] = net::tcp_pair();
    net::prepare_socket(here.get());
    net::prepare_socket(there.get());
    ours = server.accept(std::move(here));
    socket = std::move(there);
    EXPECT_EQ(SSL_set_fd(ssl.get(), socket.get()), 1);
    go_on();
  }
  void go_on() const {
    SSL_connect(ssl.get());
    ERR_clear_error();
  }
  // The server's next step, behind what the client sent.
  Result<bool> step() const {
    net::wait_readable(ours->fd());
    ours->on_readiness({.readable = true});
    return ours->handshake();
  }
  Result<bool> step_after(const std::string& bytes) const {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return step();
  }
  std::unique_ptr<SSL, FreeWith<SSL_free>> ssl;
  std::unique_ptr<TlsTransport> ours;
  Fd socket;
};

// The client's only key share is of a group that the server does not take.
TEST(HelloBound, Fails_the_handshake_of_a_server_for_its_second_hello) {
  const auto server = serve();
  const SslCtxPtr context(SSL_CTX_new(TLS_client_method()));
  ASSERT_EQ(SSL_CTX_set1_groups_list(context.get(), "P-521:P-256"), 1);
  const BegunClient client(*server, context.get());
  const Result<bool> first = client.step();
  ASSERT_TRUE(first && !*first) << "HelloRetryRequest";
  const Result<bool> second = client.step_after(record_of(kChange, "\x01") + record_of(kMessages, kLongHello));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.fault().detail, "TLS handshake: the ClientHello announces more than 17 KiB");
}

TEST(AHandshake, That_ends_with_a_close_notify_is_of_a_client_that_left) {
  const auto server = serve();
  const SslCtxPtr context(SSL_CTX_new(TLS_client_method()));
  const BegunClient client(*server, context.get());
  const Result<bool> first = client.step();
  ASSERT_TRUE(first && !*first);
  const Result<bool> second = client.step_after(record_of(kWarning, std::string("\x01\x00", 2)));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.fault().detail, "TLS handshake: closed by peer");
  EXPECT_TRUE(client.ours->peer_left());
  EXPECT_EQ(client.ours->refusal_alert(), 0);
}

TEST(AHandshake, With_certificates_beyond_their_bound_fails_at_their_announcement) {
  const Identity known;
  std::vector<std::string> names(50, std::string(60, 'n') + "." + std::string(60, 'n') + ".test");
  names.front() = "a.test";
  const Certified more = make_self_signed(names, ServerSettings().valid_from, ServerSettings().valid_until);
  ServerSettings strict = known.served();
  strict.client_ca_file = known.certificate.path();
  const auto server = serve(strict);
  for (const int count : {2, 6}) {  // of 6 KiB each
    const SslCtxPtr context(SSL_CTX_new(TLS_client_method()));
    ASSERT_EQ(SSL_CTX_use_certificate(context.get(), known.made.certificate.get()), 1);
    ASSERT_EQ(SSL_CTX_use_PrivateKey(context.get(), known.made.key.get()), 1);
    for (int n = 0; n < count; ++n) ASSERT_EQ(SSL_CTX_add1_chain_cert(context.get(), more.certificate.get()), 1);
    const BegunClient client(*server, context.get());
    const Result<bool> first = client.step();
    ASSERT_TRUE(first && !*first);
    net::wait_readable(client.socket.get());
    client.go_on();
    Result<bool> second = client.step();
    for (int n = 0; n < 100 && second && !*second; ++n) second = client.step();
    EXPECT_EQ(second ? "" : second.fault().detail, count == 2 ? "" : "TLS handshake: excessive message size");
  }
}

}  // namespace
}  // namespace carpool::proxy::tls
