// Judges the session tickets that clients present to a server. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// OpenSSL's callback for a ticket that was decrypted, or could not be. A resumed client is not asked for its
// certificate again, so a ticket is worth nothing once the certificate that it stands for has ended: a full handshake
// follows. A change of the authorities makes another SSL_CTX, whose keys decrypt no earlier ticket.
SSL_TICKET_RETURN judge_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char* name, std::size_t size,
                               SSL_TICKET_STATUS status, void* unused);

}  // namespace carpool::proxy::tls
