// Unit tests of a server's handshake after its first step, when only the client's Finished may be missing.
#include "tests/unit/net_tls_chain_support.h"

namespace carpool::proxy::tls {
namespace {

// Returns the result of lacks_finished_only() after the server has responded to the client's first message.
bool lacks_finished_only(ClientContext& from, ServerContext& to) {
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  net::prepare_socket(there.get());
  const auto client = TlsTransport::client(from, std::move(here), "localhost", 443);
  const auto server = to.accept(std::move(there));
  EXPECT_FALSE(server->lacks_finished_only());
  EXPECT_TRUE(client->handshake());
  EXPECT_TRUE(net::wait_readable(server->fd()));
  EXPECT_TRUE(server->handshake());
  return server->lacks_finished_only();
}

TEST(TlsServer, LacksTheFinishedOfATls13ClientOnly) {
  const auto server = serve();
  EXPECT_TRUE(lacks_finished_only(*trust(*server), *server));
}

TEST(TlsServer, LacksTheKeyOfATls12Client) {
  ServerSettings older;
  older.max_version = "1.2";
  const auto server = serve(older);
  const auto client = trust(*server);
  EXPECT_FALSE(lacks_finished_only(*client, *server));
  Talk whole(*client, *server);
  ASSERT_TRUE(whole.up);
  EXPECT_TRUE(lacks_finished_only(*client, *server)) << "but not that of one that resumes";
}

TEST(TlsServer, LacksTheCertificateThatItDemands) {
  const Chain chain;
  ChainPair pair(chain, "", true);
  EXPECT_FALSE(lacks_finished_only(*pair.client, *pair.server));
  ASSERT_NE(pair.connect(), nullptr);
  EXPECT_TRUE(lacks_finished_only(*pair.client, *pair.server)) << "but not of a client that resumes";
}

}  // namespace
}  // namespace carpool::proxy::tls
