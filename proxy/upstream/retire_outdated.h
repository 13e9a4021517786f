// retire_outdated(): ends connections of one origin that must serve no further request (Connection::judge says which):
// those that rest on one loop, while its sessions take nobody new. A connection in use is judged when it is given back.
#pragma once

#include "base/clock.h"
#include "exec/role.h"
#include "pool/destination/destination.h"

namespace carpool::proxy {

// Must be called on loop `home`. Returns true if some connections are to end a little later: ask again.
bool retire_outdated(pool::Destination& destination, pool::LoopId home, Instant now) LOOP_ONLY;

}  // namespace carpool::proxy
