// libuv's memory: libuv ends the process if an allocation fails, so it must share the program's reserve.
#pragma once

namespace carpool::exec {

// Must be called before libuv is used.
void use_c_allocator_in_libuv();

}  // namespace carpool::exec
