// Checks the fixed origins of listeners against the egress rules, so that --check finds a listener that could only
// refuse.
#pragma once

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy::net {

// Adds an error for each listener whose fixed origin the rules deny, by its name, or at every address that is pinned.
void check_fixed_origins(config::Reading& reading);

}  // namespace carpool::proxy::net
