// A trust store in PKCS#12 that Java reads. Included by this directory's .cc files only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Not encrypted, because certificates are public. Java rejects a store without a password, which is "changeit".
Result<std::string> java_trust_store(const std::vector<CertPtr>& certificates);

}  // namespace carpool::proxy::tls
