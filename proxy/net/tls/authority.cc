#include "proxy/net/tls/authority.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "base/contents.h"
#include "proxy/net/tls/file.h"
#include "proxy/net/tls/issuer.h"
#include "proxy/net/tls/name_constraints.h"
#include "proxy/net/tls/secret_file.h"
#include "proxy/net/tls/server_context.h"

namespace carpool::proxy::tls {

struct Authority::Impl {
  Issuer issuer;
  std::string pem;
  WallTime expires;
  std::uint64_t fingerprint = 0;
};

namespace {

Fault refused(const std::string& path, const std::string& why) {
  return {FaultKind::tls_protocol, Side::self, path + ": " + why};
}

// Returns the reason why this certificate must not sign leaves; nullptr if it may.
const char* why_unusable(X509* certificate) {
  if (X509_check_ca(certificate) != 1) return "not the certificate of an authority (basicConstraints CA:TRUE)";
  if ((X509_get_key_usage(certificate) & X509v3_KU_KEY_CERT_SIGN) == 0) return "its keyUsage lacks keyCertSign";
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) return "has expired";
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) return "is not valid yet";
  const int at = X509_get_ext_by_NID(certificate, NID_name_constraints, -1);
  if (at < 0) return "has no name constraints, so it could sign for every host";
  if (X509_EXTENSION_get_critical(X509_get_ext(certificate, at)) != 1) return "its name constraints are not critical";
  return unconstrained(certificate);
}

Status read_chain(Authority::Impl& made, const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text.take_fault();
  made.pem = std::move(*text);
  Certificates found = certificates_of(made.pem);
  if (found.all.empty()) return refused(path, "contains no certificate in PEM");
  if (!found.whole) return refused(path, "contains a certificate that cannot be read");
  made.issuer.chain = std::move(found.all);
  if (const char* why = why_unusable(made.issuer.certificate())) return refused(path, why);
  return Done{};
}

// Returns the lifetime of a leaf that is created now.
std::chrono::seconds life(WallTime authoritys_end) {
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(authoritys_end - std::chrono::system_clock::now());
  return std::min<std::chrono::seconds>(Authority::kLeafLife, left);
}

}  // namespace

Authority::Authority(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Authority::~Authority() = default;

Result<std::unique_ptr<Authority>> Authority::load(const std::string& dir) {
  ERR_clear_error();
  auto made = std::make_unique<Impl>();
  const std::string certificate = dir + "/ca.pem", key = dir + "/ca.key";
  if (Status read = read_chain(*made, certificate); !read) return read.take_fault();
  Result<KeyPtr> secret = read_secret_key(key);
  if (!secret) return secret.take_fault();
  made->issuer.key = std::move(*secret);
  if (X509_check_private_key(made->issuer.certificate(), made->issuer.key.get()) != 1) {
    ERR_clear_error();
    return refused(key, "is not the key of " + certificate);
  }
  made->expires = end_of(made->issuer.certificate());
  made->fingerprint = digest_of(made->pem) | 1U;
  return std::make_unique<Authority>(std::move(made));
}

Status Authority::covers(std::string_view host) const {
  Result<Certified> leaf = issue(impl_->issuer, std::string(host), life(impl_->expires));
  return leaf ? Status(Done{}) : Status(leaf.take_fault());
}

Result<std::unique_ptr<ServerContext>> Authority::mint(const std::string& host,
                                                       const std::vector<std::string>& alpn) const {
  ServerSettings settings;
  settings.names = {host};
  settings.alpn = alpn;
  settings.valid_until = life(impl_->expires);
  return ServerContext::issued(settings, impl_->issuer);
}

WallTime Authority::expires() const {
  return impl_->expires;
}
std::uint64_t Authority::fingerprint() const {
  return impl_->fingerprint;
}
const std::string& Authority::certificate_pem() const {
  return impl_->pem;
}

}  // namespace carpool::proxy::tls
