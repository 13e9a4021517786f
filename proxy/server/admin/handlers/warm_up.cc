#include "proxy/server/admin/handlers/warm_up.h"

#include <utility>

#include "proxy/server/admin/json.h"
#include "proxy/server/admin/query.h"

namespace carpool::proxy::admin {

namespace {
constexpr std::uint32_t kDefault = 2;  // [pool.warm_up] size, SimplePool's poolWarmUpSize
constexpr std::uint32_t kMax = 100'000;
}  // namespace

Response warm_up_route(const Call& call, const pool::Origin& origin) {
  QueryReader query(call.request.target);
  const std::uint32_t size = query.number("size", 1, kMax).value_or(kDefault);
  if (query.error()) return error_response(400, *query.error());
  Result<std::unique_ptr<PendingResponse>> pending = call.control.warm_up(origin, size);
  if (!pending)
    return error_response(pending.fault().kind == FaultKind::origins_exhausted ? 503 : 403, pending.fault().detail);
  Response response;
  response.later = std::move(*pending);
  return response;
}

Response warm_up_response(std::uint32_t made, const std::optional<std::string>& failure, const WarmUpSize& size) {
  Json json{{"opened", made},
            {"failure", or_null(failure)},
            {"requested", size.requested},
            {"capped_at", size.capped_at ? Json(*size.capped_at) : Json(nullptr)}};
  add_old_names(json, {{"opened", "made"}});
  return failure ? problem_response(502, *failure, json) : json_response(200, json);
}

}  // namespace carpool::proxy::admin
