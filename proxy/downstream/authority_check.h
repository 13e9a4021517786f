// Checks a configuration against the authority that it names, so that --check finds what the start would refuse.
#pragma once

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// Adds an error for an authority that cannot be used, and for each intercepted origin that it does not cover. Does
// nothing if there are errors already. Blocking.
void check_authority(config::Reading& reading);

}  // namespace carpool::proxy
