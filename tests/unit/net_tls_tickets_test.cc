// Unit tests of session tickets: those that a server issues, also to clients that present a certificate, and those of
// failed handshakes.
#include <array>

#include "proxy/net/tls/ticket_keys.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

using namespace std::chrono_literals;

// A client whose certificate expires after this time, and servers that require one.
class TicketsOfACertificate {
 public:
  explicit TicketsOfACertificate(std::chrono::seconds life, const std::string& version)
      : identity({"client.test"}, life), demanding(own.served()) {
    demanding.max_version = version;
    demanding.client_ca_file = identity.certificate.path();
    server = serve(demanding);
    ClientSettings settings;
    settings.cert_file = identity.certificate.path();
    settings.key_file = identity.key.path();
    client = trust(own.certificate.path(), settings);
  }
  // Connects and reads what the server sends, tickets included.
  std::unique_ptr<Talk> connect() {
    auto talk = std::make_unique<Talk>(*client, *server);
    if (!talk->up || talk->server_refusal) return nullptr;
    Talk::write(*talk->server, "x");
    Talk::read(*talk->client, 1);
    return talk;
  }

  const Identity identity, own;
  ServerSettings demanding;
  std::unique_ptr<ServerContext> server;
  std::unique_ptr<ClientContext> client;
};

class TlsTickets : public ::testing::TestWithParam<const char*> {};

TEST_P(TlsTickets, EndWithTheCertificateOfTheClient) {
  TicketsOfACertificate tickets(3s, GetParam());
  ASSERT_NE(tickets.connect(), nullptr);
  const auto again = tickets.connect();
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(again->server->security().resumed);
  const auto end = std::chrono::steady_clock::now() + 20s;
  bool refused = false;
  while (!refused && std::chrono::steady_clock::now() < end) refused = tickets.connect() == nullptr;
  EXPECT_TRUE(refused) << "a full handshake, in which the certificate has expired";
}

INSTANTIATE_TEST_SUITE_P(OfEachVersion, TlsTickets, ::testing::Values("1.2", "1.3"),
                         [](const auto& version) { return std::string("Tls1") + version.param[2]; });

TEST(TlsTicketsOfAnotherIdentity, AreWorthNothing) {
  TicketsOfACertificate tickets(1h, "1.3");
  ASSERT_NE(tickets.connect(), nullptr);
  tickets.server = serve(tickets.demanding);
  const auto again = tickets.connect();
  ASSERT_NE(again, nullptr);
  EXPECT_FALSE(again->server->security().resumed) << "the authorities of clients may have changed";
}

Instant now_of_keys{};
Instant keys_time() {
  return now_of_keys;
}

class TlsTicketKeys : public ::testing::TestWithParam<const char*> {
 protected:
  TlsTicketKeys() {
    now_of_keys = Instant(24h);
    ServerSettings settings;
    settings.max_version = GetParam();
    auto made = ServerContext::make(settings, keys_time);
    server = std::move(*made);
    client = trust(*server);
  }
  // Connects and stores the ticket. Returns true if it resumed a session.
  bool resumes() {
    Talk talk(*client, *server);
    EXPECT_TRUE(talk.up);
    Talk::write(*talk.server, "x");
    Talk::read(*talk.client, 1);
    return talk.server->security().resumed;
  }
  std::unique_ptr<ServerContext> server;
  std::unique_ptr<ClientContext> client;
};

TEST_P(TlsTicketKeys, ThatWereReplacedDecryptTheirLastTickets) {
  EXPECT_FALSE(resumes());
  now_of_keys += TicketKeys::kRotation;
  EXPECT_TRUE(resumes()) << "and the client gets a ticket of the new key";
  now_of_keys += TicketKeys::kRotation;
  // OpenSSL's client with TLS 1.2 keeps the session of the full handshake.
  EXPECT_EQ(resumes(), std::string(GetParam()) == "1.3");
}

TEST_P(TlsTicketKeys, AreForgottenWhenTheirTicketsHaveExpired) {
  EXPECT_FALSE(resumes());
  now_of_keys += TicketKeys::kRotation + TicketKeys::kTicketLife;
  EXPECT_FALSE(resumes());
  EXPECT_TRUE(resumes());
}

INSTANTIATE_TEST_SUITE_P(OfEachVersion, TlsTicketKeys, ::testing::Values("1.2", "1.3"),
                         [](const auto& version) { return std::string("Tls1") + version.param[2]; });

// The failed end of a handshake with a server that sends these bytes first.
void fail_with(ClientContext& client, std::string_view bytes) {
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  const auto stream = TlsTransport::client(client, std::move(here), "localhost", 443);
  ASSERT_TRUE(stream->handshake());
  if (bytes.empty()) return;  // abandoned
  ASSERT_EQ(::send(there.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  net::wait_readable(stream->fd());
  EXPECT_FALSE(stream->handshake());
}

TEST_P(TlsTicketKeys, OpenNoSessionAgainAfterAHandshakeThatFailedWithIt) {
  constexpr std::string_view kHandshakeFailure("\x15\x03\x03\x00\x02\x02\x28", 7);
  for (const std::string_view end : {kHandshakeFailure, std::string_view()}) {
    client = trust(*server);
    {
      Talk one(*client, *server), two(*client, *server);
      for (Talk* talk : {&one, &two}) {
        Talk::write(*talk->server, "x");
        Talk::read(*talk->client, 1);
      }
    }
    ASSERT_EQ(client->sessions(), std::string(GetParam()) == "1.3" ? 2U : 1U);
    fail_with(*client, end);
    EXPECT_EQ(client->sessions(), 0U);
    EXPECT_FALSE(resumes());
  }
}

TEST(TlsTicketKeysOfAContext, AreNotReplacedBeforeTheirTime) {
  now_of_keys = Instant(24h);
  TicketKeys keys(keys_time);
  const auto first = keys.current();
  now_of_keys += TicketKeys::kRotation - 1s;
  ASSERT_TRUE(first && keys.current());
  EXPECT_EQ(keys.current()->name, first->name);
  now_of_keys += 1s;
  const auto second = keys.current();
  ASSERT_TRUE(second);
  EXPECT_NE(second->name, first->name);
  EXPECT_NE(second->cipher, first->cipher);
  ASSERT_TRUE(keys.find(first->name.data()) && keys.find(second->name.data()));
  EXPECT_TRUE(keys.find(first->name.data())->renew);
  EXPECT_FALSE(keys.find(second->name.data())->renew);
  EXPECT_FALSE(keys.find(std::array<unsigned char, 16>{}.data()));
}

}  // namespace
}  // namespace carpool::proxy::tls
