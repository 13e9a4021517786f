// retire_outdated(): closes the idle connections of one origin and one loop that must serve no further request
// (Connection::retirement()), and retires such sessions, which then accept no new streams. A borrowed HTTP/1.1
// connection is checked when it is released.
#pragma once

#include "base/clock.h"
#include "exec/role.h"
#include "pool/destination/destination.h"

namespace carpool::proxy {

namespace net {
class AddressSet;
}

// Must be called on loop `home`. Returns true if some connections are to be closed later; the caller then calls again.
bool retire_outdated(pool::Destination& destination, LoopId home, Instant now) LOOP_ONLY;

// Closes the least useful connection of loop `home` to an address that has too many, if another address needs the place
// (AddressSet::closes_for_rebalance()).
void rebalance(pool::Destination& destination, net::AddressSet& addresses, LoopId home, Instant now) LOOP_ONLY;

}  // namespace carpool::proxy
