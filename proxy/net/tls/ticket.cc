#include "proxy/net/tls/ticket.h"

#include <ctime>

#include "proxy/net/tls/tls_transport.h"
#include "proxy/net/tls/trust_end.h"

namespace carpool::proxy::tls {
namespace {

bool has_ended(SSL_SESSION* session) {
  if (session == nullptr || SSL_SESSION_get0_peer(session) == nullptr) return false;
  return trust_end_of(session).value_or(0) <= std::time(nullptr);
}

}  // namespace

// The ticket that follows a resumption keeps the end of the one that was presented.
int mark_ticket(SSL* ssl, void*) {
  SSL_SESSION* const session = SSL_get_session(ssl);
  if (session == nullptr || SSL_SESSION_get0_peer(session) == nullptr) return 1;
  const auto& client = *static_cast<const TlsTransport*>(SSL_get_app_data(ssl));
  if (SSL_session_reused(ssl) == 0) static_cast<void>(write_trust_end(session, client.trusted_until()));
  // The session's lifetime tells the client when not to offer it any more. OpenSSL cannot encode a lifetime of zero:
  // reading it back gives three seconds, and the handshake fails.
  if (!end_session_by(session, trust_end_of(session).value_or(0))) SSL_SESSION_set_timeout(session, 1);
  return 1;
}

SSL_TICKET_RETURN check_ticket(SSL*, SSL_SESSION* session, const unsigned char*, std::size_t, SSL_TICKET_STATUS status,
                               void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
  if (has_ended(session)) return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

}  // namespace carpool::proxy::tls
