// ServerContext: the server role of TLS. For --demo and tests it uses a self-signed certificate, created at start and
// never written to disk; for listeners and the webhook a certificate from files; for intercepted origins one that an
// Authority signs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::tls {

struct Issuer;

struct ServerSettings {
  std::vector<std::string> names{"localhost", "127.0.0.1", "::1"};  // DNS names and IP addresses
  std::chrono::seconds valid_from = std::chrono::hours(-1);         // relative to now
  std::chrono::seconds valid_until = std::chrono::hours(24 * 30);
  std::string max_version = "1.3";  // "1.2" or "1.3"
  std::vector<std::string> alpn{"http/1.1"};
  std::string cert_file, key_file;  // PEM, chain and key, instead of a self-signed certificate
  std::string client_ca_file;       // PEM: require a client certificate signed by one of these; needs cert_file
  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

class ServerContext {
 public:
  // Creates a key or reads files, which takes some milliseconds. Faults contain the files and OpenSSL's reason.
  // `now` is the clock of the keys of its session tickets.
  static Result<std::unique_ptr<ServerContext>> make(const ServerSettings& settings, Instant (*now)() = Clock::now);
  // As make(); returns nullptr if settings and contents of the files are those of `before`. Blocking.
  static Result<std::unique_ptr<ServerContext>> renew(const ServerContext* before, const ServerSettings& settings);
  // Uses a certificate for the only name of `settings` that this issuer signs: see Authority::mint().
  static Result<std::unique_ptr<ServerContext>> issued(const ServerSettings& settings, const Issuer& issuer);
  ~ServerContext();
  // `socket` is accepted; the caller must call TlsTransport::handshake() on the result. If it throws std::bad_alloc,
  // the caller still owns the socket.
  std::unique_ptr<TlsTransport> accept(Fd&& socket);
  // Returns the self-signed certificate, which clients use as ca_file. Empty for one from files or from an issuer.
  const std::string& certificate_pem() const;
  // Returns true if the certificate is for this host, by its subjectAltName. Any thread.
  bool names(const std::string& host) const;
  // Returns the end of a certificate from an issuer.
  WallTime expires() const;
  // Returns true if a certificate from an issuer is valid then.
  bool valid_at(WallTime time) const;
  // Returns the hash of the contents of the files; 0 for a self-signed certificate.
  std::uint64_t fingerprint() const;

  struct Impl;
  explicit ServerContext(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::tls
