// Creates certificates with new P-256 keys: a server's that signs itself, an authority's, and a leaf that an authority
// signs. Included by this directory's .cc files only.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/net/tls/certificate_draft.h"
#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// The beginning of an authority's common name.
inline constexpr std::string_view kAuthorityName = "carpool intercept CA ";

// All return empty handles if OpenSSL fails; the reason is in its error queue.
Certified make_self_signed(const std::vector<std::string>& names, std::chrono::seconds from,
                           std::chrono::seconds until);
// Creates an authority that signs leaves for `hosts` and names below them, and for no other name or address.
Certified make_authority(const std::vector<std::string>& hosts, std::chrono::seconds until);
// Creates a leaf for exactly `host`, a name or an address. Its validity ends with that of the issuer at the latest.
Certified make_leaf(const std::string& host, std::chrono::seconds until, X509* issuer, EVP_PKEY* issuers_key);

// Return the beginning and the end of the validity, or the last time that the clock has.
WallTime begin_of(const X509* certificate);
WallTime end_of(const X509* certificate);
std::string pem_of(X509* certificate);
std::string pem_of(EVP_PKEY* key);
CertPtr certificate_of(const std::string& pem);
struct Certificates {
  std::vector<CertPtr> all;  // those before the first one that cannot be read
  bool whole = false;        // all of them could be read
};
Certificates certificates_of(const std::string& pem);

// Returns the second of a time in a certificate or a revocation list; nullopt if it cannot be read. It may be in the
// year 9999; nanoseconds end in 2262.
std::optional<std::chrono::sys_seconds> second_of(const ASN1_TIME* time);

}  // namespace carpool::proxy::tls
