#include "proxy/net/dialed.h"

#include "proxy/net/tls/client_context.h"

namespace carpool::proxy::net {

std::optional<ProvenPeer> ProvenPeer::of(const Address& peer, const tls::ClientContext* tls) {
  const bool proven = tls != nullptr ? tls->settings().verify : peer.on_this_host();
  return proven ? std::optional(ProvenPeer()) : std::nullopt;
}

}  // namespace carpool::proxy::net
