// A self-signed certificate on a fresh P-256 key. Included by this directory's .cc files only.
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
// Empty handles when OpenSSL could not; the reason stands in its queue.
SelfSigned make_self_signed(const std::vector<std::string>& names, std::chrono::seconds from,
                            std::chrono::seconds until);
std::string pem_of(X509* certificate);
std::string pem_of(EVP_PKEY* key);
CertPtr certificate_of(const std::string& pem);

}  // namespace carpool::proxy::tls
