// Unit tests of a peer that sends TLS messages without data: they cost CPU time, and the connection fails after a few.
#include <openssl/pem.h>

#include <array>

#include "proxy/net/tls/openssl.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

constexpr int kAllowed = 32;

// OpenSSL itself as the peer of a TlsTransport.
class Peer {
 public:
  // `version`: TLS1_2_VERSION or TLS1_3_VERSION.
  Peer(Fd socket, const SSL_METHOD* method, int version) : socket_(std::move(socket)), context_(SSL_CTX_new(method)) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
  }
  void show(const Identity& own) {
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), own.made.certificate.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), own.made.key.get()), 1);
  }
  void begin(bool server) {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_.get());
    server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  }
  bool step() { return SSL_do_handshake(ssl_.get()) == 1; }
  bool update_key() {
    return SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_.get()) == 1;
  }
  bool ask_to_renegotiate() { return SSL_renegotiate(ssl_.get()) == 1 && SSL_do_handshake(ssl_.get()) == 1; }
  bool say(std::string_view text) {
    std::size_t sent = 0;
    return SSL_write_ex(ssl_.get(), text.data(), text.size(), &sent) == 1;
  }

 private:
  template <class Owned, class Read>
  static Owned pem(const std::string& text, Read read) {
    const BioPtr in(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    return Owned(read(in.get(), nullptr, nullptr, nullptr));
  }
  Fd socket_;
  SslCtxPtr context_;
  std::unique_ptr<SSL, FreeWith<SSL_free>> ssl_;
};

void shake(TlsTransport& ours, Peer& peer) {
  bool done = false, peer_done = false;
  for (int i = 0; i < 100 && !(done && peer_done); ++i) {
    peer_done = peer_done || peer.step();
    if (done) continue;
    Result<bool> stepped = ours.handshake();
    ASSERT_TRUE(stepped) << stepped.fault().detail;
    done = *stepped;
  }
  ASSERT_TRUE(done && peer_done);
}

struct Flood {
  explicit Flood(bool we_serve, int version = TLS1_3_VERSION) {
    auto [here, there] = net::tcp_pair();
    net::prepare_socket(here.get());
    net::prepare_socket(there.get());
    peer.emplace(std::move(there), we_serve ? TLS_client_method() : TLS_server_method(), version);
    if (!we_serve) peer->show(identity);
    peer->begin(!we_serve);
    ours = we_serve ? serving->accept(std::move(here))
                    : TlsTransport::client(*trusting, std::move(here), "localhost", 443);
    shake(*ours, *peer);
    while (!we_serve && net::wait_readable(ours->fd(), 0) && ours->no_data_pending()) {  // tickets
    }
  }
  // Reads what has arrived.
  net::IoResult read() {
    net::wait_readable(ours->fd());
    ours->on_readiness({true, true, false});
    std::array<char, 64> bytes{};
    return ours->read(bytes);
  }

  const Identity identity;
  std::unique_ptr<ServerContext> serving = serve(identity.served());
  std::unique_ptr<ClientContext> trusting = trust(identity.certificate.path());
  std::optional<Peer> peer;
  std::unique_ptr<TlsTransport> ours;
};

class TlsFlood : public ::testing::TestWithParam<bool> {};

TEST_P(TlsFlood, OfKeyUpdatesWithoutDataEndsTheConnection) {
  Flood flood(GetParam());
  const int tickets = GetParam() ? 0 : 2;
  for (int n = tickets; n < kAllowed; ++n) {
    ASSERT_TRUE(flood.peer->update_key());
    ASSERT_EQ(flood.read().io, net::Io::would_block) << n;
  }
  ASSERT_TRUE(flood.peer->update_key());
  const net::IoResult end = flood.read();
  EXPECT_EQ(end.io, net::Io::failed);
  EXPECT_EQ(end.detail, "too many TLS messages without data");
}

TEST_P(TlsFlood, InOneBurstIsReadNoFurtherThanTheBuffer) {
  Flood flood(GetParam());
  for (int n = 0; n < 5000; ++n) ASSERT_TRUE(flood.peer->update_key());
  net::IoResult end;
  while (end.io == net::Io::would_block) end = flood.read();
  EXPECT_EQ(end.io, net::Io::failed);
  EXPECT_TRUE(net::wait_readable(flood.ours->fd(), 0)) << "the rest is left in the socket";
}

TEST_P(TlsFlood, OnAnIdleConnectionIsNoSilence) {
  Flood flood(GetParam());
  for (int n = 0; n <= kAllowed; ++n) ASSERT_TRUE(flood.peer->update_key());
  bool silent = true;
  while (silent && net::wait_readable(flood.ours->fd())) {  // the window of TCP may be small
    flood.ours->on_readiness({true, true, false});
    silent = flood.ours->no_data_pending();
  }
  EXPECT_FALSE(silent);
}

TEST_P(TlsFlood, IsNoneWhileDataArrivesInBetween) {
  Flood flood(GetParam());
  for (int n = 0; n < 4 * kAllowed; ++n) {
    ASSERT_TRUE(flood.peer->update_key());
    if (n % (kAllowed / 2) != 0) continue;
    ASSERT_TRUE(flood.peer->say("data"));
    net::IoResult received;
    while (received.io == net::Io::would_block) received = flood.read();
    ASSERT_EQ(received.bytes, 4U) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEitherSide, TlsFlood, ::testing::Values(true, false),
                         [](const auto& side) { return side.param ? "FromAClient" : "FromAnOrigin"; });

TEST(TlsFlood12, OfRequestsToRenegotiateEndsTheConnection) {
  Flood flood(false, TLS1_2_VERSION);
  for (int n = 0; n <= kAllowed; ++n) ASSERT_TRUE(flood.peer->ask_to_renegotiate());
  net::IoResult end;
  while (end.io == net::Io::would_block) end = flood.read();
  EXPECT_EQ(end.io, net::Io::failed);
}

}  // namespace
}  // namespace carpool::proxy::tls
