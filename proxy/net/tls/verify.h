// Why a certificate was refused, in words a person can act on. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// SSL_set_verify's callback: changes no verdict, only notes the reason of the first refusal at the stream.
int explain_refusal(int verdict, X509_STORE_CTX* context);

}  // namespace carpool::proxy::tls
