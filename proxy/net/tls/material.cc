#include "proxy/net/tls/material.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "proxy/net/tls/file.h"
#include "proxy/net/tls/revocation.h"
#include "proxy/net/tls/system_trust.h"

namespace carpool::proxy::tls {

namespace {

struct FreeInfos {
  void operator()(STACK_OF(X509_INFO) * infos) const { sk_X509_INFO_pop_free(infos, X509_INFO_free); }
};
using InfosPtr = std::unique_ptr<STACK_OF(X509_INFO), FreeInfos>;

// Must change whenever the verification rules change, so that no session verified by the old rules is resumed.
constexpr std::string_view kRules = "subjectAltName only, revocation lists of ca_file for the chain, end of trust";

BioPtr reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

struct Added {
  int certificates = 0, lists = 0;
  bool whole = true;  // every certificate and every list was added
};

// Adds all certificates and revocation lists of `text`. If there are none, OpenSSL's error queue has the reason.
Added add_authorities(X509_STORE* store, const std::string& text) {
  const BioPtr in = reader(text);
  const InfosPtr infos(in ? PEM_X509_INFO_read_bio(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  Added added;
  for (int i = 0; infos && i < sk_X509_INFO_num(infos.get()); ++i) {
    const X509_INFO* info = sk_X509_INFO_value(infos.get(), i);
    const bool certificate = info->x509 != nullptr && X509_STORE_add_cert(store, info->x509) == 1;
    const bool list = info->crl != nullptr && X509_STORE_add_crl(store, info->crl) == 1;
    added.certificates += certificate ? 1 : 0;
    added.lists += list ? 1 : 0;
    added.whole &= certificate == (info->x509 != nullptr) && list == (info->crl != nullptr);
  }
  added.whole &= infos != nullptr;
  return added;
}

// OpenSSL reads the revocation lists of a file, but applies them only if these flags are set.
Status use_ca_file(SSL_CTX* context, const std::string& path, const std::string& text) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  const Added added = add_authorities(store, text);
  if (added.certificates == 0 && ERR_peek_error() == 0) {
    return Fault{FaultKind::tls_protocol, Side::self, "ca_file " + path + ": contains no certificate in PEM"};
  }
  if (added.certificates == 0 || !added.whole) return take_setting_fault("ca_file " + path);
  if (added.lists != 0) apply_revocation_lists(store);
  return Done{};
}

bool has_pem(const std::string& text) {
  return text.find("-----BEGIN") != std::string::npos;
}

// Unreadable parts of the system's store are skipped, as OpenSSL does. A part for which there is no memory is a Fault,
// and so is a store of which nothing was read: OpenSSL does not always say that it had no memory.
Status use_authorities(SSL_CTX* context, const ClientSettings& settings, const Material& material) {
  for (const std::string& text : material.authorities) {
    if (!settings.ca_file.empty()) {
      if (Status used = use_ca_file(context, settings.ca_file, text); !used) return used;
    } else {
      const Added added = add_authorities(SSL_CTX_get_cert_store(context), text);
      if (take_out_of_memory_errors() && !added.whole) {
        return Fault{FaultKind::budget, Side::self, "the system's certificate authorities: out of memory"};
      }
    }
    ERR_clear_error();
  }
  const bool empty = sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context))) <= 0;
  if (empty && std::any_of(material.authorities.begin(), material.authorities.end(), has_pem)) {
    return Fault{FaultKind::budget, Side::self, "the system's certificate authorities: none could be read"};
  }
  return Done{};
}

// The first certificate is the client's, the others are its chain.
bool use_chain(SSL_CTX* context, const std::string& text) {
  const BioPtr in = reader(text);
  const CertPtr own(in ? PEM_read_bio_X509_AUX(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (CertPtr next{PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) return false;
    static_cast<void>(next.release());  // owned by the context now
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (at_end) ERR_clear_error();
  return at_end;
}

bool use_key(SSL_CTX* context, const std::string& text) {
  const BioPtr in = reader(text);
  const KeyPtr key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

const std::string& key_file_of(const ClientSettings& settings) {
  return settings.key_file.empty() ? settings.cert_file : settings.key_file;
}

Status use_identity(SSL_CTX* context, const ClientSettings& settings, const Material& material) {
  if (settings.cert_file.empty()) return Done{};
  const std::string& key_file = key_file_of(settings);
  if (!use_chain(context, material.certificate)) return take_setting_fault("cert_file " + settings.cert_file);
  if (!use_key(context, material.key)) return take_setting_fault("key_file " + key_file);
  if (SSL_CTX_check_private_key(context) != 1)
    return take_setting_fault("key_file " + key_file + " does not fit cert_file");
  return Done{};
}

Status read_setting_file(const char* setting, const std::string& path, std::string& into) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) return Fault{FaultKind::tls_protocol, Side::self, setting + (" " + bytes.fault().detail)};
  into = std::move(*bytes);
  return Done{};
}

// Hashes each part with its length, so that different lists of parts cannot collide. The constructor throws
// std::bad_alloc; the other functions allocate nothing.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) {
    if (context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) return;
    ERR_clear_error();
    throw std::bad_alloc();
  }
  void part(std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    EVP_DigestUpdate(context_.get(), &size, sizeof size);
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  void number(std::uint64_t value) { EVP_DigestUpdate(context_.get(), &value, sizeof value); }
  std::uint64_t end() {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> all{};
    EVP_DigestFinal_ex(context_.get(), all.data(), nullptr);
    std::uint64_t first = 0;
    std::memcpy(&first, all.data(), sizeof first);
    return first;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>> context_;
};

}  // namespace

Material::~Material() {
  for (std::string* secret : {&certificate, &key}) OPENSSL_cleanse(secret->data(), secret->size());
}

Result<Material> read_material(const ClientSettings& settings) {
  Material material;
  if (settings.verify && settings.ca_file.empty()) {
    Result<std::vector<std::string>> system = read_system_trust();
    if (!system) return system.take_fault();
    material.authorities = std::move(*system);
  }
  if (settings.verify && !settings.ca_file.empty()) {
    if (Status read = read_setting_file("ca_file", settings.ca_file, material.authorities.emplace_back()); !read) {
      return read.take_fault();
    }
  }
  if (settings.cert_file.empty()) return material;
  if (Status read = read_setting_file("cert_file", settings.cert_file, material.certificate); !read)
    return read.take_fault();
  if (Status read = read_setting_file("key_file", key_file_of(settings), material.key); !read) return read.take_fault();
  return material;
}

std::uint64_t fingerprint_of(const ClientSettings& settings, const Material& material) {
  Digest digest;
  for (const std::string_view part :
       {kRules, std::string_view(settings.min_version), std::string_view(settings.server_name),
        std::string_view(material.certificate), std::string_view(material.key)}) {
    digest.part(part);
  }
  digest.number(settings.verify ? 1 : 0);
  for (const std::vector<std::string>* list : {&settings.alpn, &material.authorities}) {
    digest.number(list->size());
    for (const std::string& one : *list) digest.part(one);
  }
  const std::uint64_t fingerprint = digest.end();
  return fingerprint != 0 ? fingerprint : 1;
}

Status use_material(SSL_CTX* context, const ClientSettings& settings, const Material& material) {
  if (Status trusted = use_authorities(context, settings, material); !trusted) return trusted;
  return use_identity(context, settings, material);
}

}  // namespace carpool::proxy::tls
