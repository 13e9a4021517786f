// POST /pools/{origin}/pause, /resume, /drain, /reconnect: commands to one pool. The response follows when the command
// was applied.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

// Applies `action` to the pool, with the query's `for`. Returns 400 if that is not a duration.
Response apply_command(const Call& call, const PoolInfo& pool, PoolAction action);

template <PoolAction action>
Response command_route(const Call& call, const PoolInfo& pool) {
  return apply_command(call, pool, action);
}
// Returns 200 and the pool's new state.
Response pool_command_response(const PoolCommand& command);

}  // namespace carpool::proxy::admin
