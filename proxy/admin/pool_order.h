// POST /pools/{origin}/pause, /resume, /drain, /reconnect: an operator's word to one pool. Answered when it was given.
#pragma once

#include "proxy/admin/route.h"

namespace carpool::proxy::admin {

Answer pause_route(const Call& call, const PoolFacts& pool);
Answer resume_route(const Call& call, const PoolFacts& pool);
Answer drain_route(const Call& call, const PoolFacts& pool);
Answer reconnect_route(const Call& call, const PoolFacts& pool);
// 200 and what the pool is now.
Answer pool_order_answer(PoolOrder order);

}  // namespace carpool::proxy::admin
