// Authority: the certificate authority of intercepted origins. Its key signs certificates for the hosts that the name
// constraints of its certificate permit, and for no other; the key never leaves this object.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace carpool::proxy::tls {

class ServerContext;

class Authority final {
 public:
  // The validity of a minted certificate, unless the authority expires earlier.
  static constexpr std::chrono::hours kLeafLife{24};

  // Reads `ca.pem` (the authority's certificate, then those that lead to its root, if it is none) and `ca.key` in
  // `dir`. Faults contain the file and the reason: a file that is unreadable, a key that others may read or that is not
  // the certificate's, a certificate that has expired, is not an authority's or has no name constraints. Blocking.
  static Result<std::unique_ptr<Authority>> load(const std::string& dir);
  ~Authority();

  // Returns no Fault if mint() would succeed for this host: a DNS name in lower case, or an address without brackets.
  // FaultKind::tls_certificate: the name constraints exclude the host.
  Status covers(std::string_view host) const;
  // Creates a key and a certificate for exactly this host. Takes about a millisecond: for blocking tasks. May be called
  // from several threads at once.
  Result<std::unique_ptr<ServerContext>> mint(const std::string& host, const std::vector<std::string>& alpn) const;

  WallTime expires() const;
  // Returns the hash of `ca.pem`; equal for equal files, only valid within this process. Never 0.
  std::uint64_t fingerprint() const;
  // Returns `ca.pem` as it was read: the certificate that applications must trust.
  const std::string& certificate_pem() const;

  struct Impl;
  explicit Authority(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::tls
