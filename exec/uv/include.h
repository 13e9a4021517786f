// libuv_of(): access to libuv's loop for code that needs a libuv handle (signals). Exposes libuv's types. Handles must
// be used on the loop's thread, started with a fresh uv_update_time(), and closed before the loop ends.
#pragma once

#include <uv.h>

#include "exec/loop.h"

namespace carpool::exec {

// `loop` must be a UvLoop; asserted.
uv_loop_t& libuv_of(Loop& loop);

}  // namespace carpool::exec
