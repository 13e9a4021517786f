// Issuer: an authority's certificate and key, and the leaves that they sign. Included by this directory's .cc files
// only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

struct Issuer {
  X509* certificate() const { return chain.front().get(); }

  std::vector<CertPtr> chain;  // the issuer's own certificate first
  KeyPtr key;
};

// Returns a leaf that clients accept for `host`: it is verified as they would do it. The Fault contains the host and
// OpenSSL's reason.
Result<Certified> issue(const Issuer& issuer, const std::string& host, std::chrono::seconds until);

}  // namespace carpool::proxy::tls
