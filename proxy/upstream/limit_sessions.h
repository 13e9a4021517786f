// limit_sessions(): applies a changed pool.max_streams to the open sessions of one origin and one loop.
#pragma once

#include "base/clock.h"
#include "exec/role.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

// Must be called on loop `home`, whose sessions it limits to the max_streams of `origin`.
void limit_sessions(const OriginRuntime& origin, LoopId home, Instant now) LOOP_ONLY;

}  // namespace carpool::proxy
