// ClientContext: one TLS identity towards origins (verification, client certificate, ALPN, and a session cache shared
// by all loops). Together with TlsTransport and ServerContext it wraps OpenSSL.
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
  std::string ca_file;  // empty: the system's trust store
  std::string cert_file, key_file;
  std::string min_version = "1.2";
  bool verify = true;
  std::string server_name;        // empty: the origin's host
  std::vector<std::string> alpn;  // "http/1.1", "h2"; empty: no ALPN
  friend bool operator==(const ClientSettings&, const ClientSettings&) = default;
};

// Returns the key of a peer in the session cache.
inline std::string peer_name(const std::string& host, std::uint16_t port) {
  return host + ":" + std::to_string(port);
}

class ClientContext {
 public:
  // Loads files: blocking. Faults contain the file and the reason.
  static Result<std::unique_ptr<ClientContext>> make(const ClientSettings& settings);
  // Reads the files of `before` again. Returns nullptr if they are unchanged. A Fault if no authority is left where
  // there were some. Blocking.
  static Result<std::unique_ptr<ClientContext>> renew(const ClientContext& before);
  ~ClientContext();
  const ClientSettings& settings() const;
  // Returns a hash of the settings and of the loaded bytes: authorities (including the system's), certificate and key.
  // Equal in two processes if each would verify what the other verified. Never 0.
  std::uint64_t fingerprint() const;
  // Exports serialised sessions of this peer for a successor process; single-use sessions leave the store. They are
  // secrets.
  std::vector<std::string> hand_out(const std::string& peer, std::size_t most);
  // Imports a session that a process with the same fingerprint exported. Returns false if it is invalid.
  bool remember(const std::string& peer, const std::string& session);
  // Returns the number of resumable sessions over all origins.
  std::size_t sessions() const;

  struct Impl;
  explicit ClientContext(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::tls
