// POST /pools/{origin}/pause, /resume, /drain, /reconnect: commands to one pool. The response follows when it was
// applied.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

// `command` to the pool, with the query's `for`; 400 if that is no duration.
Response give_order(const Call& call, const PoolInfo& pool, PoolCommand command);

template <PoolCommand command>
Response order_route(const Call& call, const PoolInfo& pool) {
  return give_order(call, pool, command);
}
// Returns 200 and the pool's new state.
Response pool_order_response(const PoolOrder& order);

}  // namespace carpool::proxy::admin
