// Verifies the certificates of peers, in either role. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// OpenSSL's callback for each certificate of a chain, from the root down. Changes a result only by pass_without_list();
// records in the transport how long the chain is trusted, or the reason of the first rejection.
int check_certificate(int verdict, X509_STORE_CTX* context);

}  // namespace carpool::proxy::tls
