// POST /pools/{origin}/pause, /resume, /drain, /reconnect: an operator's word to one pool. Answered when it was given.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

template <PoolOrder order>
Answer order_route(const Call& call, const PoolFacts& pool) {
  Answer answer;
  answer.later = call.control.order(pool.origin, order);
  return answer;
}
// 200 and what the pool is now.
Answer pool_order_answer(PoolOrder order);

}  // namespace carpool::proxy::admin
