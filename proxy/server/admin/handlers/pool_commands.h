// POST /pools/{origin}/pause, /resume, /drain, /reconnect: an operator's word to one pool. Answered when it was given.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

template <PoolCommand order>
Response order_route(const Call& call, const PoolInfo& pool) {
  Response answer;
  answer.later = call.control.order(pool.origin, order);
  return answer;
}
// 200 and what the pool is now.
Response pool_order_answer(PoolCommand order);

}  // namespace carpool::proxy::admin
