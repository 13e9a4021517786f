// `carpool top` in a terminal: the pools once a second, those with most to do first, until q or Ctrl-C.
#pragma once

#include "proxy/commands/cli/admin_client.h"
#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

// Those that work or wait most come first; then the busiest so far.
Json busiest_first(const Json& pools);

// `first`: what /pools has answered just now. An instance that answers no more is said, and asked on: it may come back.
void watch(const Instance& instance, const Json& first);

}  // namespace carpool::proxy::cli
