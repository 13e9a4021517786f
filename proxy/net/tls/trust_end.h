// TrustEnd: the second in which the verification of a peer ends, because the first of the certificates of its chain, or
// of the revocation lists that apply to them, expires. A resumed session is not verified again, so the end is stored in
// the session, which carries it through tickets, resumptions and a hand-over; no resumption extends it. Included by
// this directory's .cc files only.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Seconds since 1970.
using TrustEnd = std::int64_t;
inline constexpr TrustEnd kNoTrustEnd = std::numeric_limits<TrustEnd>::max();

// Returns the end of the certificate that `context` has just accepted, or of a list of its issuer if that ends first.
TrustEnd end_of_current(X509_STORE_CTX* context);
// Returns false if memory is exhausted.
bool write_trust_end(SSL_SESSION* session, TrustEnd end);
// Returns nothing if the session has none.
std::optional<TrustEnd> trust_end_of(SSL_SESSION* session);
// Shortens the session's life so that it ends by `end`. Returns false if that has passed.
bool end_session_by(SSL_SESSION* session, TrustEnd end);

}  // namespace carpool::proxy::tls
