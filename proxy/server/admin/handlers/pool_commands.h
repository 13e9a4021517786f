// POST /pools/{origin}/pause, /resume, /drain, /reconnect: commands to one pool. The response follows when it was
// applied.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

template <PoolCommand order>
Response order_route(const Call& call, const PoolInfo& pool) {
  Response answer;
  answer.later = call.control.order(pool.origin, order);
  return answer;
}
// Returns 200 and the pool's new state.
Response pool_order_answer(PoolCommand order);

}  // namespace carpool::proxy::admin
