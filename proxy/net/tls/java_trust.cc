#include "proxy/net/tls/java_trust.h"

#include <openssl/objects.h>
#include <openssl/pkcs12.h>

namespace carpool::proxy::tls {
namespace {

// Java treats a certificate with this attribute of Oracle's (trustedKeyUsage) as trusted.
constexpr const char* kTrusted = "2.16.840.1.113894.746875.1.1";
constexpr const char* kPassword = "changeit";
constexpr int kNotEncrypted = -1;
constexpr int kRounds = 10'000;

struct FreeBags {
  void operator()(STACK_OF(PKCS12_SAFEBAG) * bags) const { sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free); }
};
struct FreeSafes {
  void operator()(STACK_OF(PKCS7) * safes) const { sk_PKCS7_pop_free(safes, PKCS7_free); }
};
using BagsPtr = std::unique_ptr<STACK_OF(PKCS12_SAFEBAG), FreeBags>;
using SafesPtr = std::unique_ptr<STACK_OF(PKCS7), FreeSafes>;
using Pkcs12Ptr = std::unique_ptr<PKCS12, FreeWith<PKCS12_free>>;

// Entries with equal names replace each other.
bool add(STACK_OF(PKCS12_SAFEBAG) * bags, X509* certificate, std::size_t number) {
  const std::string name = "carpool-" + std::to_string(number);
  PKCS12_SAFEBAG* const bag = PKCS12_add_cert(&bags, certificate);
  const auto* any = reinterpret_cast<const unsigned char*>(OBJ_nid2obj(NID_anyExtendedKeyUsage));
  return bag != nullptr && PKCS12_add_friendlyname_utf8(bag, name.c_str(), static_cast<int>(name.size())) == 1 &&
         PKCS12_add1_attr_by_txt(bag, kTrusted, V_ASN1_OBJECT, any, -1) == 1;  // -1: `any` is an ASN1_OBJECT
}

// The integrity check uses SHA-1, which every version of Java reads; its password is public.
Pkcs12Ptr store_of(STACK_OF(PKCS12_SAFEBAG) * bags) {
  STACK_OF(PKCS7)* list = nullptr;
  const bool added = PKCS12_add_safe(&list, bags, kNotEncrypted, 0, nullptr) == 1;
  const SafesPtr safes(list);
  Pkcs12Ptr store(added ? PKCS12_add_safes(safes.get(), NID_undef) : nullptr);
  if (!store || PKCS12_set_mac(store.get(), kPassword, -1, nullptr, 0, kRounds, EVP_sha1()) != 1) return nullptr;
  return store;
}

}  // namespace

Result<std::string> java_trust_store(const std::vector<CertPtr>& certificates) {
  ERR_clear_error();
  const BagsPtr bags(sk_PKCS12_SAFEBAG_new_null());
  bool good = bags != nullptr;
  for (std::size_t i = 0; good && i < certificates.size(); ++i) good = add(bags.get(), certificates[i].get(), i);
  const Pkcs12Ptr store(good ? store_of(bags.get()) : nullptr);
  const int size = store ? i2d_PKCS12(store.get(), nullptr) : 0;
  const auto fault = [] {
    return Fault{FaultKind::tls_protocol, Side::self, "a PKCS#12 store: " + std::string(take_reason())};
  };
  if (size <= 0) return fault();
  std::string bytes(static_cast<std::size_t>(size), '\0');
  auto* at = reinterpret_cast<unsigned char*>(bytes.data());
  if (i2d_PKCS12(store.get(), &at) != size) return fault();
  return bytes;
}

}  // namespace carpool::proxy::tls
