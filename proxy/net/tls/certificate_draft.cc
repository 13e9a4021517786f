#include "proxy/net/tls/certificate_draft.h"

#include <openssl/bn.h>
#include <openssl/x509v3.h>

#include <utility>

#include "proxy/net/address.h"

namespace carpool::proxy::tls {

namespace {

constexpr int kSerialBits = 127;

// Returns the certificate as a client decodes it. OpenSSL keeps the bytes that it decoded; one that was only built is
// encoded again, twice, for each handshake that sends it (65,000 instructions).
CertPtr decoded(const X509* built) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(built, &bytes);
  if (size <= 0) return nullptr;
  const unsigned char* at = bytes;
  CertPtr certificate(d2i_X509(nullptr, &at, size));
  OPENSSL_free(bytes);
  return certificate;
}

}  // namespace

CertificateDraft::CertificateDraft() : made_{KeyPtr(EVP_EC_gen("P-256")), CertPtr(X509_new())} {
  good_ = made_.key && made_.certificate;
  if (!good_) return;
  issuer_ = made_.certificate.get();
  must(X509_set_version(issuer_, X509_VERSION_3) == 1);
  must(number());
  must(X509_set_pubkey(issuer_, made_.key.get()) == 1);
}

bool CertificateDraft::number() {
  using NumberPtr = std::unique_ptr<BIGNUM, FreeWith<BN_free>>;
  const NumberPtr number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made_.certificate.get())) != nullptr;
}

CertificateDraft& CertificateDraft::valid(std::chrono::seconds from, std::chrono::seconds until) {
  if (!good_) return *this;
  must(X509_gmtime_adj(X509_getm_notBefore(made_.certificate.get()), static_cast<long>(from.count())) != nullptr);
  must(X509_gmtime_adj(X509_getm_notAfter(made_.certificate.get()), static_cast<long>(until.count())) != nullptr);
  return *this;
}

CertificateDraft& CertificateDraft::subject(const std::string& common_name) {
  if (!good_) return *this;
  const auto* bytes = reinterpret_cast<const unsigned char*>(common_name.data());
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(made_.certificate.get()), "CN", MBSTRING_UTF8, bytes,
                                  static_cast<int>(common_name.size()), -1, 0) == 1);
  return *this;
}

CertificateDraft& CertificateDraft::issued_by(X509* issuer) {
  if (!good_) return *this;
  issuer_ = issuer != nullptr ? issuer : made_.certificate.get();
  X509* const made = made_.certificate.get();
  must(X509_set_issuer_name(made, X509_get_subject_name(issuer_)) == 1);
  const ASN1_TIME* const end = X509_get0_notAfter(issuer_);
  if (ASN1_TIME_compare(X509_get0_notAfter(made), end) > 0) must(X509_set1_notAfter(made, end) == 1);
  return *this;
}

bool CertificateDraft::add(int nid, const std::string& value) {
  using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer_, made_.certificate.get(), nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(made_.certificate.get(), extension.get(), -1) == 1;
}

CertificateDraft& CertificateDraft::extend(int nid, const std::string& value) {
  if (good_) must(add(nid, value));
  return *this;
}

namespace {
// Returns nullptr for Ed25519 and Ed448, which hash by themselves.
const EVP_MD* hash_for(EVP_PKEY* signer) {
  const int kind = EVP_PKEY_get_id(signer);
  return kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448 ? nullptr : EVP_sha256();
}
}  // namespace

Certified CertificateDraft::sign(EVP_PKEY* key) {
  if (!good_) return {};
  EVP_PKEY* const signer = key != nullptr ? key : made_.key.get();
  if (X509_sign(made_.certificate.get(), signer, hash_for(signer)) <= 0) return {};
  made_.certificate = decoded(made_.certificate.get());
  if (!made_.certificate) return {};
  return std::move(made_);
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ",";
    out += (net::Address::literal(name, 0) ? "IP:" : "DNS:") + name;
  }
  return out;
}

}  // namespace carpool::proxy::tls
