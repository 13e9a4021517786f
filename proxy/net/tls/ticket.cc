#include "proxy/net/tls/ticket.h"

namespace carpool::proxy::tls {
namespace {

bool has_ended(SSL_SESSION* session) {
  const X509* certificate = session == nullptr ? nullptr : SSL_SESSION_get0_peer(session);
  return certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0;
}

}  // namespace

SSL_TICKET_RETURN judge_ticket(SSL*, SSL_SESSION* session, const unsigned char*, std::size_t, SSL_TICKET_STATUS status,
                               void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
  if (has_ended(session)) return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

}  // namespace carpool::proxy::tls
