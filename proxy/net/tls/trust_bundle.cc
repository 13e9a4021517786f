#include "proxy/net/tls/trust_bundle.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/file.h"
#include "proxy/net/tls/java_trust.h"
#include "proxy/net/tls/system_trust.h"
#include "proxy/net/tls/whole_file.h"

namespace carpool::proxy::tls {
namespace {

constexpr mode_t kBundleMode = 0644;

using CertPtrs = std::vector<CertPtr>;

bool known(const CertPtrs& all, const X509* one) {
  return std::any_of(all.begin(), all.end(), [&](const CertPtr& other) { return X509_cmp(other.get(), one) == 0; });
}

// SSL_CERT_FILE may name a bundle that was made here: it must not restore an authority that was removed.
bool ours(const X509* certificate) {
  std::array<char, 128> name{};
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int size = X509_NAME_get_text_by_NID(subject, NID_commonName, name.data(), static_cast<int>(name.size()));
  return size > 0 && std::string_view(name.data()).starts_with(kAuthorityName);
}

std::string joined_pem(const CertPtrs& certificates) {
  std::string pem;
  for (const CertPtr& one : certificates) pem += pem_of(one.get());
  return pem;
}

Result<CertPtrs> of_the_system() {
  CertPtrs all;
  const Result<std::vector<std::string>> texts = read_system_trust();
  if (!texts) return texts.fault();
  for (const std::string& text : *texts) {
    for (CertPtr& one : certificates_of(text).all) {
      if (!ours(one.get()) && !known(all, one.get())) all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Result<Bundle> write_trust_bundle(const std::string& dir, const std::string& into) {
  const std::string path = dir + "/ca.pem";
  const Result<std::string> own = read_file(path);
  if (!own) return own.fault();
  const auto refused = [&path](const char* why) { return Fault{FaultKind::tls_protocol, Side::self, path + why}; };
  Certificates found = certificates_of(*own);
  if (found.all.empty()) return refused(": contains no certificate in PEM");
  if (!found.whole) return refused(": contains a certificate that cannot be read");
  CertPtrs certificates = std::move(found.all);
  Bundle bundle;
  Result<CertPtrs> system = of_the_system();
  if (!system) return system.take_fault();
  std::string pem = joined_pem(certificates);
  if (into != dir) {  // the certificates alone: all users may read the copy, and the file may hold a key, too
    if (Status written = replace_file(into + "/ca.pem", pem, kBundleMode); !written) return written.take_fault();
  }
  pem += joined_pem(*system);
  bundle.system = system->size();
  std::move(system->begin(), system->end(), std::back_inserter(certificates));
  if (Status written = replace_file(into + "/bundle.pem", pem, kBundleMode); !written) return written.take_fault();
  const Result<std::string> java = java_trust_store(certificates);
  if (!java) return java.fault();
  if (Status written = replace_file(into + "/bundle.p12", *java, kBundleMode); !written) return written.take_fault();
  return bundle;
}

}  // namespace carpool::proxy::tls
