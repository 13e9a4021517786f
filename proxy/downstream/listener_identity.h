// The TLS identity of a listener, or of the admin endpoint: its certificate and key, and the authorities of its
// clients' certificates.
#pragma once

#include <memory>

#include "base/result.h"
#include "proxy/config/config.h"

namespace carpool::proxy::tls {
class ServerContext;
}

namespace carpool::proxy {

// nullptr: plain text.
using ListenerIdentity = std::shared_ptr<tls::ServerContext>;

// Reads the files that `listen` names, and returns `before` if neither they nor the settings have changed. Blocking.
// The Fault names the listener, the key, the file and the reason.
Result<ListenerIdentity> read_identity(const config::Listen& listen, const ListenerIdentity& before);
Result<ListenerIdentity> read_identity(const config::Admin& admin, const ListenerIdentity& before);

}  // namespace carpool::proxy
