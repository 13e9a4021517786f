// check_sockets(): whether carpool could create the Unix sockets at which it accepts connections.
#pragma once

namespace carpool::proxy::config {

struct Reading;

// Adds an error for each socket whose folder does not exist or cannot be written, and for each that would replace a
// file of another kind, so that --check reports what the start would reject. Creates nothing. Blocking.
void check_sockets(Reading& reading);

}  // namespace carpool::proxy::config
