#include "proxy/net/tls/certificate.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/ascii.h"
#include "proxy/net/address.h"
#include "proxy/net/tls/clock_skew.h"

namespace carpool::proxy::tls {
namespace {

std::string contents(BIO* memory) {
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  return {text, static_cast<std::size_t>(size)};
}

// A kind of name that no constraint mentions is not constrained at all (RFC 5280 §4.2.1.10), so each kind without a
// host is excluded: addresses as a whole, DNS names except for a domain that does not exist (RFC 6761 §6.4).
std::string constraints(const std::vector<std::string>& hosts) {
  std::string out = "critical";
  bool names = false, v4 = false, v6 = false;
  for (const std::string& host : hosts) {
    const auto address = net::Address::literal(host, 0);
    names = names || !address;
    v4 = v4 || (address && address->family() == AF_INET);
    v6 = v6 || (address && address->family() == AF_INET6);
    if (!address) out += ",permitted;DNS:" + host;
    if (!address) continue;
    const bool four = address->family() == AF_INET;
    out +=
        ",permitted;IP:" + address->host() + (four ? "/255.255.255.255" : "/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  }
  if (!names) out += ",permitted;DNS:invalid";
  if (!v4) out += ",excluded;IP:0.0.0.0/0.0.0.0";
  if (!v6) out += ",excluded;IP:::/::";
  return out;
}

// The names of two authorities differ: a verifier that has both must not try the wrong key.
std::string name_of_authority() {
  std::array<unsigned char, 4> random{};
  std::string name(kAuthorityName);
  if (RAND_bytes(random.data(), random.size()) != 1) return name;
  for (const unsigned char byte : random) append_hex(name, static_cast<char>(byte));
  return name;
}

WallTime time_of(const ASN1_TIME* time) {
  constexpr auto kLast = std::chrono::floor<std::chrono::seconds>(WallTime::max());
  const auto second = second_of(time);
  return second ? WallTime(std::min(*second, kLast)) : WallTime();
}

}  // namespace

Certified make_self_signed(const std::vector<std::string>& names, std::chrono::seconds from,
                           std::chrono::seconds until) {
  if (names.empty()) return {};
  return CertificateDraft()
      .valid(from, until)
      .subject(names.front())
      .issued_by(nullptr)
      .extend(NID_subject_alt_name, alternative_names(names))
      .extend(NID_basic_constraints, "critical,CA:TRUE")
      .sign(nullptr);
}

Certified make_authority(const std::vector<std::string>& hosts, std::chrono::seconds until) {
  if (hosts.empty()) return {};
  return CertificateDraft()
      .valid(-kClockSkew, until)
      .subject(name_of_authority())
      .issued_by(nullptr)
      .extend(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
      .extend(NID_key_usage, "critical,keyCertSign")
      .extend(NID_ext_key_usage, "serverAuth")
      .extend(NID_subject_key_identifier, "hash")
      .extend(NID_name_constraints, constraints(hosts))
      .sign(nullptr);
}

// The host is not part of the subject: a common name has 64 characters at most, and verifiers treat one that looks like
// a host name as such.
Certified make_leaf(const std::string& host, std::chrono::seconds until, X509* issuer, EVP_PKEY* issuers_key) {
  return CertificateDraft()
      .valid(-kClockSkew, until)
      .subject("carpool intercepted origin")
      .issued_by(issuer)
      .extend(NID_basic_constraints, "critical,CA:FALSE")
      .extend(NID_key_usage, "critical,digitalSignature")
      .extend(NID_ext_key_usage, "serverAuth")
      .extend(NID_subject_key_identifier, "hash")
      .extend(NID_authority_key_identifier, "keyid:always")
      .extend(NID_subject_alt_name, alternative_names({host}))
      .sign(issuers_key);
}

WallTime begin_of(const X509* certificate) {
  return time_of(X509_get0_notBefore(certificate));
}

WallTime end_of(const X509* certificate) {
  return time_of(X509_get0_notAfter(certificate));
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
  return CertPtr(memory ? PEM_read_bio_X509(memory.get(), nullptr, no_passphrase, nullptr) : nullptr);
}

Certificates certificates_of(const std::string& pem) {
  Certificates found;
  const BioPtr in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (CertPtr next{in ? PEM_read_bio_X509(in.get(), nullptr, no_passphrase, nullptr) : nullptr}) {
    found.all.push_back(std::move(next));
  }
  found.whole = in && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return found;
}

std::optional<std::chrono::sys_seconds> second_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace carpool::proxy::tls
