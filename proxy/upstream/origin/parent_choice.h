// Decides whether an origin is reached through a parent proxy (upstream.proxy, upstream.no_proxy), and through which
// one.
#pragma once

#include "base/result.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/net/parent_proxy.h"

namespace carpool::proxy {

// Returns true unless no_proxy names the origin, it is this host, or `pinned` is true ([[origin]].addresses names the
// addresses to dial).
bool goes_through_parent(const config::Upstream& upstream, const pool::Origin& origin, bool pinned);

// Returns the settings that identify the pool of such an origin, which include those of the proxy only if it is used.
config::Upstream settings_without_choice(config::Upstream upstream, bool through_parent);

// Reads the credentials. The Fault names the key and the reason but does not contain the value. Blocks.
Result<net::ParentProxy> parent_of(const config::Upstream& upstream);

}  // namespace carpool::proxy
