// Finds the TLS messages without data that a peer sends after the handshake. Included by this directory's .cc files
// only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

// Called by OpenSSL's info callback at each step of the state machine, and for alerts. Returns true if the
// step is a message of TLS 1.3 after the handshake (KeyUpdate, NewSessionTicket) that was read, or the warning that
// replies to a renegotiation of TLS 1.2.
bool is_control_message(const SSL* ssl, int where);

}  // namespace carpool::proxy::tls
