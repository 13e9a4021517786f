#include "proxy/net/tls/trust_end.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/revocation.h"

namespace carpool::proxy::tls {
namespace {

struct FreeLists {
  void operator()(STACK_OF(X509_CRL) * lists) const { sk_X509_CRL_pop_free(lists, X509_CRL_free); }
};
using ListsPtr = std::unique_ptr<STACK_OF(X509_CRL), FreeLists>;

// A time that cannot be read counts as passed.
TrustEnd end_at(const ASN1_TIME* time) {
  const auto second = second_of(time);
  return second ? TrustEnd{second->time_since_epoch().count()} : 0;
}

// Returns the first end among the lists in force of this issuer. OpenSSL selects one of them; an end that is too early
// costs a full handshake only. If none is in force, the one that OpenSSL selected has just expired.
TrustEnd end_of_lists(X509_STORE_CTX* context, const X509_NAME* issuer) {
  if (!passes_revocation_lists(context) || !has_list(context, issuer)) return kNoTrustEnd;
  const ListsPtr lists(X509_STORE_CTX_get1_crls(context, issuer));
  if (!lists) return 0;  // out of memory
  TrustEnd end = kNoTrustEnd;
  bool in_force = false;
  for (int i = 0; i < sk_X509_CRL_num(lists.get()); ++i) {
    const ASN1_TIME* next = X509_CRL_get0_nextUpdate(sk_X509_CRL_value(lists.get(), i));
    if (next != nullptr && X509_cmp_current_time(next) <= 0) continue;
    in_force = true;
    if (next != nullptr) end = std::min(end, end_at(next));
  }
  return in_force ? end : 0;
}

}  // namespace

TrustEnd end_of_current(X509_STORE_CTX* context) {
  const X509* certificate = X509_STORE_CTX_get_current_cert(context);
  return std::min(end_at(X509_get0_notAfter(certificate)), end_of_lists(context, X509_get_issuer_name(certificate)));
}

// Only processes on this machine read the bytes.
bool write_trust_end(SSL_SESSION* session, TrustEnd end) {
  return SSL_SESSION_set1_ticket_appdata(session, &end, sizeof end) == 1;
}

std::optional<TrustEnd> trust_end_of(SSL_SESSION* session) {
  void* data = nullptr;
  std::size_t size = 0;
  TrustEnd end = 0;
  if (SSL_SESSION_get0_ticket_appdata(session, &data, &size) != 1 || size != sizeof end) return std::nullopt;
  std::memcpy(&end, data, sizeof end);
  return end;
}

bool end_session_by(SSL_SESSION* session, TrustEnd end) {
  const TrustEnd now = std::time(nullptr);
  if (end <= now) return false;
  const TrustEnd life = TrustEnd{SSL_SESSION_get_time(session)} + SSL_SESSION_get_timeout(session) - now;
  const TrustEnd left = end - now;
  if (life > left) {
    SSL_SESSION_set_timeout(session, static_cast<long>(SSL_SESSION_get_timeout(session) - (life - left)));
  }
  return true;
}

}  // namespace carpool::proxy::tls
