// Checks a configuration against the authority that it names, so that --check reports the errors that a start would.
#pragma once

namespace carpool::proxy::config {
struct Reading;
}

namespace carpool::proxy {

// Adds an error for an unusable authority, and for each intercepted origin outside its constraints. Does nothing if
// there are errors already. Blocks.
void check_authority(config::Reading& reading);

}  // namespace carpool::proxy
