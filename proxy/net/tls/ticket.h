// Session tickets of clients: a server writes an end into each, and checks those that come back. Included by this
// directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// OpenSSL's callbacks. A resumed client does not present its certificate again, so the ticket of a client that
// presented one carries the end of its verification. After that, or without an end, the ticket is rejected: a full
// handshake follows. A change of the authorities creates another SSL_CTX, whose keys decrypt no earlier ticket.
int mark_ticket(SSL* ssl, void* unused);
// Called for a ticket that was decrypted, or could not be.
SSL_TICKET_RETURN check_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char* name, std::size_t size,
                               SSL_TICKET_STATUS status, void* unused);

}  // namespace carpool::proxy::tls
