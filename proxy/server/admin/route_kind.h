// Determines which thread may answer a request to the admin endpoint: pure functions of the request.
#pragma once

#include "proxy/server/admin/request.h"

namespace carpool::proxy::admin {

// Returns true if the response iterates over every pool, reads /proc or renders much, so that it must not run on a loop
// that serves requests. Liveness and commands are answered at once, even when no thread is free.
bool may_block(const AdminRequest& request);
// Returns true if the admin loop must answer the request, because it changes something or subscribes to events. The
// other requests only read data that any thread may read.
bool needs_loop(const AdminRequest& request);
// Returns true if such a response waits for the loops or runs a simulation. The others take milliseconds, so the admin
// loop may compute them itself if no thread is free.
bool takes_long(const AdminRequest& request);

}  // namespace carpool::proxy::admin
