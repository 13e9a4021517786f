// The rule by which revocation lists (CRL) apply to a chain: the peer's own certificate needs a list of its issuer;
// each other one is checked against the lists of its issuer, and passes without one only if the files have none of that
// issuer. A list that has expired, or that its issuer did not sign, is an error at any depth. Included by this
// directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Makes verification look up each certificate of a chain. It then needs pass_without_list().
void apply_revocation_lists(X509_STORE* store);
bool passes_revocation_lists(X509_STORE_CTX* context);
// Returns true if there is a list of `issuer`. Issuers are distinguished by their names.
bool has_list(X509_STORE_CTX* context, const X509_NAME* issuer);
// Called by the verify callback about the error that it reports. Returns true, and clears the error, if that is only
// the lack of a list for a certificate that needs none.
bool pass_without_list(X509_STORE_CTX* context);

}  // namespace carpool::proxy::tls
