// Which kinds of host an authority's name constraints leave open. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Returns why this authority could vouch for hosts that are not named; nullptr if its name constraints bound both DNS
// names and IP addresses. A kind of name that no constraint mentions is not constrained at all (RFC 5280 §4.2.1.10).
const char* unconstrained(X509* authority);

}  // namespace carpool::proxy::tls
