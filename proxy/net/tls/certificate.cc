#include "proxy/net/tls/certificate.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "proxy/net/address.h"

namespace carpool::proxy::tls {
namespace {

using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;

bool extend(X509* certificate, int nid, const std::string& value) {
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ",";
    out += (net::Address::literal(name, 0) ? "IP:" : "DNS:") + name;
  }
  return out;
}

bool name_it(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  const int size = static_cast<int>(name.size());
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, size, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1;
}

bool number_it(X509* certificate) {
  std::uint64_t serial = 0;
  return RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1U) == 1;
}

std::string contents(BIO* memory) {
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

SelfSigned make_self_signed(const std::vector<std::string>& names, std::chrono::seconds from,
                            std::chrono::seconds until) {
  KeyPtr key(EVP_EC_gen("P-256"));
  CertPtr certificate(X509_new());
  if (!key || !certificate || names.empty()) return {};
  X509* made = certificate.get();
  X509_set_version(made, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made), static_cast<long>(from.count()));
  X509_gmtime_adj(X509_getm_notAfter(made), static_cast<long>(until.count()));
  const bool done = number_it(made) && name_it(made, names.front()) && X509_set_pubkey(made, key.get()) == 1 &&
                    extend(made, NID_subject_alt_name, alternative_names(names)) &&
                    extend(made, NID_basic_constraints, "critical,CA:TRUE") &&
                    X509_sign(made, key.get(), EVP_sha256()) > 0;
  if (!done) return {};
  return {std::move(key), std::move(certificate)};
}

std::string pem_of(X509* certificate) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), certificate) != 1) return {};
  return contents(memory.get());
}

std::string pem_of(EVP_PKEY* key) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_PrivateKey(memory.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) return {};
  return contents(memory.get());
}

CertPtr certificate_of(const std::string& pem) {
  const BioPtr memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return CertPtr(memory ? PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr) : nullptr);
}

}  // namespace carpool::proxy::tls
