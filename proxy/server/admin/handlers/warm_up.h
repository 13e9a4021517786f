// POST /pools/{origin}/warm-up?size=N: creates the pool if there is none; the response follows when all dials have
// ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pool/origin.h"
#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response warm_up_route(const Call& call, const pool::Origin& origin);
struct WarmUpSize {
  std::uint32_t requested = 0;
  std::optional<std::uint32_t> capped_at;  // the pool's size now, if that is less
};
// Returns 200 if all wanted connections are open, otherwise 502 with the first failure.
Response warm_up_response(std::uint32_t made, const std::optional<std::string>& failure, const WarmUpSize& size = {});

}  // namespace carpool::proxy::admin
