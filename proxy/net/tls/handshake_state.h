// State of a TlsTransport that only its handshake needs. Included by this directory's .cc files only.
#pragma once

#include <string>

#include "proxy/net/tls/hello_bound.h"

namespace carpool::proxy::tls {

struct HandshakeState {
  std::string name;       // the peer for messages, "host:port"
  std::string wanted;     // the name or address that its certificate must have
  std::string refusal;    // why its certificate was rejected
  HelloBound hello{};     // of a server's client
  bool too_long = false;  // the client exceeded it
  bool resumes = false;   // a session was offered to the server
};

}  // namespace carpool::proxy::tls
