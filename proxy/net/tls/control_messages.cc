#include "proxy/net/tls/control_messages.h"

namespace carpool::proxy::tls {

bool is_control_message(const SSL* ssl, int where) {
  if ((where & SSL_CB_WRITE_ALERT) == SSL_CB_WRITE_ALERT) return true;
  const OSSL_HANDSHAKE_STATE state = SSL_get_state(ssl);
  const bool read = state == TLS_ST_SR_KEY_UPDATE || state == TLS_ST_CR_KEY_UPDATE || state == TLS_ST_CR_SESSION_TICKET;
  return (where & SSL_CB_LOOP) != 0 && read;
}

}  // namespace carpool::proxy::tls
