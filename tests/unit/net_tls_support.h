// net_tls_support.h: two TLS transports connected over loopback, driven by the test.
#pragma once

#include <optional>
#include <thread>

#include "proxy/net/plain_transport.h"
#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/tls/server_context.h"
#include "proxy/net/tls/tls_transport.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy::tls {

inline std::unique_ptr<ServerContext> serve(const ServerSettings& settings = {}) {
  auto made = ServerContext::make(settings);
  EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
  return std::move(*made);
}

// A certificate that signs itself, and its key, as files.
struct Identity {
  explicit Identity(const std::vector<std::string>& names = ServerSettings().names,
                    std::chrono::seconds life = ServerSettings().valid_until)
      : made(make_self_signed(names, ServerSettings().valid_from, life)) {}
  ServerSettings served(ServerSettings settings = {}) const {
    settings.cert_file = certificate.path();
    settings.key_file = key.path();
    return settings;
  }
  const Certified made;
  const net::TemporaryFile certificate{pem_of(made.certificate.get())}, key{pem_of(made.key.get())};
};

inline std::unique_ptr<ClientContext> trust(const std::string& file, ClientSettings settings = {}) {
  settings.ca_file = file;
  auto made = ClientContext::make(settings);
  EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
  return std::move(*made);
}

inline std::unique_ptr<ClientContext> trust(const ServerContext& server, const ClientSettings& settings = {}) {
  return trust(net::TemporaryFile(server.certificate_pem()).path(), settings);
}

// One connection between the two contexts; `refusal` is set if the client's side of the handshake failed.
struct Talk {
  Talk(ClientContext& from, ServerContext& to, const std::string& host = "localhost", std::uint16_t port = 443) {
    auto [here, there] = net::tcp_pair();
    net::prepare_socket(here.get());
    net::prepare_socket(there.get());
    client = TlsTransport::client(from, std::move(here), host, port);
    server = to.accept(std::move(there));
    bool client_done = false, server_done = false;
    for (int i = 0; i < 100 && !(client_done && server_done) && !refusal; ++i) {
      client_done = client_done || step(*client, refusal);
      server_done = server_done || step(*server, server_refusal);
    }
    up = client_done && server_done;
  }
  static bool step(TlsTransport& stream, std::optional<Fault>& into) {
    if (into) return true;
    auto done = stream.handshake();
    if (!done) into.emplace(done.take_fault());
    return done && *done;
  }
  static std::string read(TlsTransport& from, std::size_t most = 65536) {
    std::string out(most, '\0');
    if (!from.maybe_readable()) net::wait_readable(from.fd());
    last_io = from.read(out);
    out.resize(last_io.bytes);
    return out;
  }
  static net::IoResult write(TlsTransport& into, std::string_view bytes) {
    const std::array pieces{net::piece(bytes)};
    return into.write(pieces);
  }

  std::unique_ptr<TlsTransport> client, server;
  std::optional<Fault> refusal, server_refusal;
  bool up = false;
  static inline net::IoResult last_io;
};

}  // namespace carpool::proxy::tls
