// ListenerCredentials: the credentials of a listener's credentials_file, which its clients must present.
#pragma once

#include <memory>

#include "base/result.h"
#include "proxy/config/config.h"
#include "proxy/exchange/client_credentials.h"

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// nullptr: none are required.
using ListenerCredentials = std::shared_ptr<const ClientCredentials>;

// Reads the file that `listen` names. Returns `before` if the contents are the same. Blocks. The Fault names the
// listener, the file, the line and the reason.
Result<ListenerCredentials> read_credentials(const config::Listen& listen, const ListenerCredentials& before);

// Adds an error for each unusable line of a credentials_file, so that --check reports the errors that a start would.
// Blocks.
void check_credentials(config::Reading& reading);

}  // namespace carpool::proxy
