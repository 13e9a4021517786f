// ListenerIdentity: the TLS identity of a listener or of the admin endpoint: its certificate and key, and the
// authorities for its clients' certificates.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "proxy/config/config.h"

namespace carpool::proxy::tls {
class ServerContext;
}

namespace carpool::proxy {

// nullptr for plain text.
using ListenerIdentity = std::shared_ptr<tls::ServerContext>;

// Reads the files that `listen` names. Returns `before` if neither they nor the settings have changed. Blocks. The
// Fault names the listener, the key, the file and the reason.
Result<ListenerIdentity> read_identity(const config::Listen& listen, const ListenerIdentity& before);
Result<ListenerIdentity> read_identity(const config::Admin& admin, const ListenerIdentity& before);

// Returns false if there is no certificate, or one that was issued and is not valid at `now`, before its renewal,
// because the clock was set, forward or back, or the machine was suspended: a client that refuses it would get tunnels
// for a while.
bool is_in_time(const ListenerIdentity& issued, WallTime now);

}  // namespace carpool::proxy
