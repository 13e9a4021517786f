// Checks the certificates, keys and authorities that a configuration names, so that --check reports the errors that a
// start would.
#pragma once

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// Adds an error for each file that TLS cannot use. Blocks.
void check_certificates(config::Reading& reading);

}  // namespace carpool::proxy
