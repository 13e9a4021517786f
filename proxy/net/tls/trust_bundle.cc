#include "proxy/net/tls/trust_bundle.h"

#include <openssl/pem.h>

#include <algorithm>
#include <array>
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

using Certificates = std::vector<CertPtr>;

bool known(const Certificates& all, const X509* one) {
  return std::any_of(all.begin(), all.end(), [&](const CertPtr& other) { return X509_cmp(other.get(), one) == 0; });
}

// SSL_CERT_FILE may name a bundle that was made here: it must not restore an authority that was removed.
bool ours(const X509* certificate) {
  std::array<char, 128> name{};
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int size = X509_NAME_get_text_by_NID(subject, NID_commonName, name.data(), static_cast<int>(name.size()));
  return size > 0 && std::string_view(name.data()).starts_with(kAuthorityName);
}

Certificates parsed_certificates(const std::string& pem) {
  Certificates all;
  const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (CertPtr next{in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr}) {
    all.push_back(std::move(next));
  }
  ERR_clear_error();
  return all;
}

Result<Certificates> of_the_system() {
  Certificates all;
  const Result<std::vector<std::string>> texts = read_system_trust();
  if (!texts) return texts.fault();
  for (const std::string& text : *texts) {
    for (CertPtr& one : parsed_certificates(text)) {
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
  Certificates certificates = parsed_certificates(*own);
  if (certificates.empty())
    return Fault{FaultKind::tls_protocol, Side::self, path + ": contains no certificate in PEM"};
  Bundle bundle;
  Result<Certificates> system = of_the_system();
  if (!system) return system.take_fault();
  for (CertPtr& one : *system) {
    ++bundle.system;
    certificates.push_back(std::move(one));
  }
  std::string pem;
  for (const CertPtr& one : certificates) pem += pem_of(one.get());
  if (into != dir) {
    if (Status written = replace_file(into + "/ca.pem", *own, kBundleMode); !written) return written.take_fault();
  }
  if (Status written = replace_file(into + "/bundle.pem", pem, kBundleMode); !written) return written.take_fault();
  const Result<std::string> java = java_trust_store(certificates);
  if (!java) return java.fault();
  if (Status written = replace_file(into + "/bundle.p12", *java, kBundleMode); !written) return written.take_fault();
  return bundle;
}

}  // namespace carpool::proxy::tls
