// CertificateDraft: an X.509 certificate with a new P-256 key, until it is signed. Included by this directory's .cc
// files only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

struct Certified {
  KeyPtr key;
  CertPtr certificate;
};

// One step that fails makes sign() return empty handles; the reason is in OpenSSL's error queue.
class CertificateDraft final {
 public:
  CertificateDraft();
  // Sets the validity, in seconds from now.
  CertificateDraft& valid(std::chrono::seconds from, std::chrono::seconds until);
  CertificateDraft& subject(const std::string& common_name);
  // `issuer`: nullptr if the certificate signs itself; else the validity ends with that of the issuer at the latest, so
  // valid() comes before. Extensions that name the issuer's key come after it.
  CertificateDraft& issued_by(X509* issuer);
  // `value` in the notation of OpenSSL's configuration files.
  CertificateDraft& extend(int nid, const std::string& value);
  // `key`: nullptr for the certificate's own.
  Certified sign(EVP_PKEY* key);

 private:
  void must(bool done) { good_ = good_ && done; }
  bool add(int nid, const std::string& value);
  bool number();
  Certified made_;
  X509* issuer_ = nullptr;
  bool good_ = false;
};

// Returns "DNS:a.example,IP:10.0.0.1", for example.
std::string alternative_names(const std::vector<std::string>& names);

}  // namespace carpool::proxy::tls
