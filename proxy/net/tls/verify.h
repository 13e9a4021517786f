// Explains why a certificate was rejected. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Callback for SSL_set_verify: leaves the verdict unchanged and records the reason of the first rejection in the
// transport.
int explain_refusal(int verdict, X509_STORE_CTX* context);

}  // namespace carpool::proxy::tls
