// Checks the certificates, keys and authorities that a configuration names, so that --check finds what the start would
// refuse.
#pragma once

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// Adds an error for each file that TLS cannot use. Blocking.
void check_certificates(config::Reading& reading);

}  // namespace carpool::proxy
