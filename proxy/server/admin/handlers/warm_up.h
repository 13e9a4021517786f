// POST /pools/{origin}/warm-up?size=N: the pool is made if there is none; the answer comes when all dials have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pool/origin.h"
#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response warm_up_route(const Call& call, const pool::Origin& origin);
// 200 when everything that was wanted is open; 502 with the first failure when it is not.
Response warm_up_answer(std::uint32_t made, const std::optional<std::string>& failure);

}  // namespace carpool::proxy::admin
