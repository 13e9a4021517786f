// `carpool top` in a terminal: shows the pools once a second, failing origins and the busiest first, until q or Ctrl-C.
#pragma once

#include "proxy/commands/cli/admin_client.h"
#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

// Sorts failing origins first, then by current activity and waiters, then by total activity.
Json busiest_first(const Json& pools);

// `first`: the response of /pools that was just received. If the instance stops responding, top shows an error line and
// continues to poll.
void watch(const Instance& instance, const Json& first);

}  // namespace carpool::proxy::cli
