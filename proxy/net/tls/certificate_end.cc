#include "proxy/net/tls/certificate_end.h"

#include <openssl/pem.h>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/file.h"

namespace carpool::proxy::tls {

Result<std::chrono::system_clock::time_point> certificate_end(const std::string& path) {
  const auto failed = [&path](const char* why) {
    ERR_clear_error();
    return Fault{FaultKind::internal, Side::self, path + why};
  };
  const Result<std::string> pem = read_file(path);
  if (!pem) return pem.fault();
  const CertPtr certificate = certificate_of(*pem);
  if (!certificate) return failed(" holds no certificate");
  int days = 0, seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1)
    return failed(" has a certificate without an end");
  return std::chrono::system_clock::now() + std::chrono::hours(24) * days + std::chrono::seconds(seconds);
}

}  // namespace carpool::proxy::tls
