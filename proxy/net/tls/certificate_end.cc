#include "proxy/net/tls/certificate_end.h"

#include <openssl/pem.h>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/file.h"

namespace carpool::proxy::tls {

Result<std::chrono::sys_seconds> certificate_end(const std::string& path) {
  const auto failed = [&path](const char* why) {
    ERR_clear_error();
    return Fault{FaultKind::internal, Side::self, path + why};
  };
  const Result<std::string> pem = read_file(path);
  if (!pem) return pem.fault();
  const CertPtr certificate = certificate_of(*pem);
  if (!certificate) return failed(" holds no certificate");
  const auto end = second_of(X509_get0_notAfter(certificate.get()));
  if (!end) return failed(" has a certificate without an expiry time");
  return *end;
}

}  // namespace carpool::proxy::tls
