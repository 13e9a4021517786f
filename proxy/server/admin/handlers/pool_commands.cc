#include "proxy/server/admin/handlers/pool_commands.h"

#include <string>

#include "proxy/config/text.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/path.h"

namespace carpool::proxy::admin {

Response give_order(const Call& call, const PoolInfo& pool, PoolCommand command) {
  PoolOrder order{command, std::nullopt};
  if (const auto text = query_value(call.request.target, "for")) {
    if (command != PoolCommand::pause && command != PoolCommand::drain) {
      return error_response(400, "for: only pause and drain last for a time");
    }
    order.lasts = config::parse_duration(*text);
    if (!order.lasts || *order.lasts <= Duration::zero()) {
      return error_response(400, "for: `" + *text + R"(` is no duration above zero, such as "30s" or "10m")");
    }
  }
  Response response;
  response.later = call.control.order(pool.origin, order);
  return response;
}

namespace {
const char* outcome(PoolCommand command) {
  switch (command) {
    case PoolCommand::pause:
      return "paused";
    case PoolCommand::resume:
      return "resumed";
    case PoolCommand::drain:
      return "draining; `resume` ends it";
    case PoolCommand::reconnect:
      return "reconnecting";
  }
  return "";
}
}  // namespace

Response pool_order_response(const PoolOrder& order) {
  Json json{{"status", outcome(order.command)}};
  if (order.lasts) json["resumes_in_seconds"] = seconds(*order.lasts);
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
