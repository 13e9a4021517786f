// The certificate authorities of the system, at the places that OpenSSL was built with (SSL_CERT_FILE and SSL_CERT_DIR
// replace them). They are read at once: OpenSSL itself would look into the directory in each handshake, on the loop,
// and find files of another moment than those that were hashed.
#pragma once

#include <string>
#include <vector>

namespace carpool::proxy::tls {

// PEM, the bundle first. What is missing or unreadable is left out; blocking.
std::vector<std::string> read_system_trust();

}  // namespace carpool::proxy::tls
