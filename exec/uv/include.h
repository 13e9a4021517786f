// The way to libuv's loop for those few that need a uv handle (signals, c-ares' sockets). Whoever includes this sees
// libuv's types. Handles are used on the loop's thread only, started with a fresh uv_update_time(), and closed before
// the loop ends.
#pragma once

#include <uv.h>

#include "exec/loop.h"

namespace carpool::exec {

// `loop` is a UvLoop; anything else is a mistake of the program and asserted.
uv_loop_t& libuv_of(Loop& loop);

}  // namespace carpool::exec
