#include "proxy/net/tls/issuer.h"

#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <string_view>

#include "proxy/net/address.h"

namespace carpool::proxy::tls {
namespace {

using X509StorePtr = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using VerifyPtr = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;

constexpr std::string_view kOutside = "outside the name constraints of the authority";

Fault no_leaf(const std::string& host, std::string_view why) {
  const FaultKind kind = why == kOutside ? FaultKind::tls_certificate : FaultKind::tls_protocol;
  return {kind, Side::self, "a certificate for " + host + ": " + std::string(why)};
}

// The authority itself is trusted, even if it is not its own issuer.
bool demand(X509_STORE_CTX* verify, const std::string& host) {
  X509_VERIFY_PARAM* const wanted = X509_STORE_CTX_get0_param(verify);
  X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_PARTIAL_CHAIN);
  if (X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER) != 1) return false;
  if (net::Address::literal(host, 0)) return X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
  return X509_VERIFY_PARAM_set1_host(wanted, host.data(), host.size()) == 1;
}

// Returns nullptr if the leaf is good.
const char* fault_of(const Issuer& issuer, X509* leaf, const std::string& host) {
  const X509StorePtr store(X509_STORE_new());
  const VerifyPtr verify(X509_STORE_CTX_new());
  const bool ready = store && verify && X509_STORE_add_cert(store.get(), issuer.certificate()) == 1 &&
                     X509_STORE_CTX_init(verify.get(), store.get(), leaf, nullptr) == 1 && demand(verify.get(), host);
  if (!ready) return "out of memory";
  if (X509_verify_cert(verify.get()) == 1) return nullptr;
  const int error = X509_STORE_CTX_get_error(verify.get());
  const bool outside = error == X509_V_ERR_PERMITTED_VIOLATION || error == X509_V_ERR_EXCLUDED_VIOLATION;
  return outside ? kOutside.data() : X509_verify_cert_error_string(error);
}

}  // namespace

Result<Certified> issue(const Issuer& issuer, const std::string& host, std::chrono::seconds until) {
  ERR_clear_error();
  Certified leaf = make_leaf(host, until, issuer.certificate(), issuer.key.get());
  if (!leaf.certificate) return no_leaf(host, take_reason());
  const char* fault = fault_of(issuer, leaf.certificate.get(), host);
  ERR_clear_error();
  if (fault != nullptr) return no_leaf(host, fault);
  return leaf;
}

}  // namespace carpool::proxy::tls
