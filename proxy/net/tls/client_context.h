// ClientContext: everything that makes one TLS identity towards origins (verification, client certificate, ALPN,
// session cache shared by all loops). The door to OpenSSL together with tls/stream and tls/server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace carpool::proxy::net {
class Transport;
}

namespace carpool::proxy::tls {

struct ClientSettings {
  std::string ca_file;  // empty: the system's bundle
  std::string cert_file, key_file;
  std::string min_version = "1.2";
  bool verify = true;
  std::string server_name;        // empty: the origin's host
  std::vector<std::string> alpn;  // "http/1.1", "h2"; empty: no ALPN
  friend bool operator==(const ClientSettings&, const ClientSettings&) = default;
};

// How sessions know their peer.
inline std::string peer_name(const std::string& host, std::uint16_t port) {
  return host + ":" + std::to_string(port);
}

class ClientContext {
 public:
  // Loads files: blocking. Faults name the file and the reason.
  static Result<std::unique_ptr<ClientContext>> make(const ClientSettings& settings);
  // Reads the files of `before` again. Null: they hold what `before` was made of. Blocking.
  static Result<std::unique_ptr<ClientContext>> renew(const ClientContext& before);
  ~ClientContext();
  const ClientSettings& settings() const;
  // Of the settings and of the very bytes that were loaded: authorities (the system's included), certificate and key.
  // Equal in two processes: what one verified, the other would verify. Never 0.
  std::uint64_t fingerprint() const;
  // For a successor: sessions to resume with this peer, serialised; those of single use leave the store. They are
  // secrets.
  std::vector<std::string> hand_out(const std::string& peer, std::size_t most);
  // One that another process handed out, of a context with the same fingerprint. False: it is none.
  bool remember(const std::string& peer, const std::string& session);
  // Sessions that wait to be resumed, over all origins.
  std::size_t sessions() const;

  struct Impl;
  explicit ClientContext(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::tls
