// Creates a self-signed certificate with a new P-256 key. Included by this directory's .cc files only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

struct SelfSigned {
  KeyPtr key;
  CertPtr certificate;
};
// Returns empty handles if OpenSSL fails; the reason is in its error queue.
SelfSigned make_self_signed(const std::vector<std::string>& names, std::chrono::seconds from,
                            std::chrono::seconds until);
std::string pem_of(X509* certificate);
std::string pem_of(EVP_PKEY* key);
CertPtr certificate_of(const std::string& pem);

}  // namespace carpool::proxy::tls
