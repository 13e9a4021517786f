// unconstrained(): finds the kinds of host that an authority's name constraints leave open. Included by this
// directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Returns the reason why this authority could certify hosts that are not named; nullptr if its name constraints bound
// both DNS names and IP addresses. A kind of name that no constraint mentions is not constrained at all (RFC 5280
// §4.2.1.10).
const char* unconstrained(X509* authority);

}  // namespace carpool::proxy::tls
