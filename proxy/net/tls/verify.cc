#include "proxy/net/tls/verify.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "proxy/net/tls/revocation.h"
#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/tls/trust_end.h"

namespace carpool::proxy::tls {
namespace {

constexpr int kMaxNames = 4;
constexpr int kMaxNameBytes = 253;

// These bytes are chosen by the certificate's author; unprintable ones must not reach a log line or a header.
std::string as_text(const ASN1_STRING* string) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(string));
  std::string text(data, static_cast<std::size_t>(std::min(ASN1_STRING_length(string), kMaxNameBytes)));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string ip_text(const ASN1_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  const char* done = inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return done != nullptr ? done : "?";
}

std::string common_name(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "none";
  return as_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

// Returns the subject alternative names of the certificate.
std::string alternative_names_of(const X509* certificate) {
  using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
  const NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string out;
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  for (int i = 0; i < count && i < kMaxNames; ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (!out.empty()) out += ", ";
    if (name->type == GEN_DNS)
      out += as_text(name->d.dNSName);
    else if (name->type == GEN_IPADD)
      out += ip_text(name->d.iPAddress);
    else
      out += "?";
  }
  if (count > kMaxNames) out += ", …";
  return out;
}

// Describes the certificate in an error message; uses the common name if there is no other name.
std::string names_of(const X509* certificate) {
  const std::string names = alternative_names_of(certificate);
  return names.empty() ? common_name(certificate) : names;
}

std::string wrong_name(const X509* certificate, const std::string& wanted) {
  const std::string names = alternative_names_of(certificate);
  if (!names.empty()) return "certificate is for " + names + ", wanted " + wanted;
  return "certificate has no subjectAltName, wanted " + wanted + " (its common name, " + common_name(certificate) +
         ", does not count)";
}

std::string day_of(const ASN1_TIME* time) {
  const BioPtr memory(BIO_new(BIO_s_mem()));
  if (!memory || ASN1_TIME_print(memory.get(), time) != 1) return "?";
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string explain(int error, const X509* certificate, const std::string& wanted) {
  std::string words = X509_verify_cert_error_string(error);
  if (certificate == nullptr) return words;
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return wrong_name(certificate, wanted);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return words + ": " + names_of(certificate) + ", not after " + day_of(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return words + ": " + names_of(certificate) + ", not before " + day_of(X509_get0_notBefore(certificate));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return words + ": no trusted authority (ca_file) issued that of " + names_of(certificate);
    default:
      return words + ": " + names_of(certificate);
  }
}

TlsTransport& stream_of(X509_STORE_CTX* context) {
  const auto* ssl = static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  return *static_cast<TlsTransport*>(SSL_get_app_data(ssl));
}

void note_refusal(X509_STORE_CTX* context) {
  TlsTransport& stream = stream_of(context);
  const int error = X509_STORE_CTX_get_error(context);
  stream.refuse_certificate(explain(error, X509_STORE_CTX_get_current_cert(context), stream.wanted_name()));
}

}  // namespace

int check_certificate(int verdict, X509_STORE_CTX* context) {
  if (verdict == 1) {
    stream_of(context).trust_until(end_of_current(context));
    return 1;
  }
  if (pass_without_list(context)) return 1;
  try {
    note_refusal(context);
  } catch (const std::bad_alloc&) {  // refused without the reason
  }
  return verdict;
}

}  // namespace carpool::proxy::tls
