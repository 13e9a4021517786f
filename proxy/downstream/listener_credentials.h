// The credentials that a listener asks for: those of its credentials_file.
#pragma once

#include <memory>

#include "base/result.h"
#include "proxy/config/config.h"
#include "proxy/exchange/client_credentials.h"

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// nullptr: none.
using ListenerCredentials = std::shared_ptr<const ClientCredentials>;

// Reads the file that `listen` names, and returns `before` if it lists the same. Blocking. The Fault names the
// listener, the file, the line and the reason.
Result<ListenerCredentials> read_credentials(const config::Listen& listen, const ListenerCredentials& before);

// Adds an error for each line of a credentials_file that carpool cannot use, so that --check finds what the start
// would refuse. Blocking.
void check_credentials(config::Reading& reading);

}  // namespace carpool::proxy
