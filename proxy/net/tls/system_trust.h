// Reads the system's certificate authorities from OpenSSL's default locations (or SSL_CERT_FILE and SSL_CERT_DIR). They
// are read at once: OpenSSL itself would search the directory in each handshake, on the loop, and could find other
// files than those that were hashed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carpool::proxy::tls {

// Returns PEM texts, the bundle first. Missing and forbidden files are skipped. An error that may pass is a Fault of
// kind `budget`, so that a part of the authorities is never taken for all. Blocking.
Result<std::vector<std::string>> read_system_trust();

}  // namespace carpool::proxy::tls
