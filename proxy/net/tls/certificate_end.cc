#include "proxy/net/tls/certificate_end.h"

#include <openssl/pem.h>

#include <ctime>

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
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1)
    return failed(" has a certificate without an end");
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&end)));
}

}  // namespace carpool::proxy::tls
