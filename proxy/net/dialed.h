// Dialed: a new connection to an origin, and what it took to open it.
#pragma once

#include <memory>

#include "base/clock.h"
#include "proxy/net/address.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

struct Dialed {
  std::unique_ptr<Transport> transport;  // not watched by the loop; the owner must watch it
  Address peer, local;
  Duration dns{}, tcp{}, tls{};  // duration of each phase
  Duration tls_cpu{};            // CPU time of the handshake
};

}  // namespace carpool::proxy::net
