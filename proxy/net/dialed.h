// Dialed: a new connection to an origin, and the cost of opening it.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "proxy/net/address.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::tls {
class ClientContext;
}

namespace carpool::proxy::net {

// ProvenPeer: the proof that a connection leads to its origin and that no other party reads it. Only of() creates one,
// so a function that takes a ProvenPeer cannot be called for any other connection.
class ProvenPeer {
 public:
  // `tls`: the context of the handshake that was completed; nullptr: plain text, which an address of this host proves:
  // loopback or a Unix socket.
  static std::optional<ProvenPeer> of(const Address& peer, const tls::ClientContext* tls);

 private:
  ProvenPeer() = default;
};

struct Dialed {
  std::unique_ptr<Transport> transport;  // not watched by the loop; the owner must watch it
  Address peer, local;
  std::optional<ProvenPeer> proven_peer;
  Duration dns{}, tcp{}, tls{};  // duration of each phase, over all its parts
  Duration tls_cpu{};            // CPU time of the handshake
};

}  // namespace carpool::proxy::net
