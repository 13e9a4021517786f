#include "proxy/server/admin/handlers/pool_commands.h"

#include <string>

#include "proxy/config/text.h"
#include "proxy/server/admin/json.h"
#include "proxy/server/admin/path.h"

namespace carpool::proxy::admin {

Response apply_command(const Call& call, const PoolInfo& pool, PoolAction action) {
  PoolCommand command{action, std::nullopt};
  if (const auto text = query_value(call.request.target, "for")) {
    if (action != PoolAction::pause && action != PoolAction::drain) {
      return error_response(400, "for: only pause and drain last for a time");
    }
    command.lasts = config::parse_duration(*text);
    if (!command.lasts || *command.lasts <= Duration::zero()) {
      return error_response(400, "for: `" + *text + R"(` is not a duration above zero, such as "30s" or "10m")");
    }
  }
  Response response;
  response.later = call.control.apply(pool.origin, command);
  return response;
}

namespace {
const char* outcome(PoolAction action) {
  switch (action) {
    case PoolAction::pause:
      return "paused";
    case PoolAction::resume:
      return "resumed";
    case PoolAction::drain:
      return "draining; `carpool resume ORIGIN` ends it";
    case PoolAction::reconnect:
      return "reconnecting";
  }
  return "";
}
}  // namespace

Response pool_command_response(const PoolCommand& command) {
  Json json{{"status", outcome(command.action)}};
  if (command.lasts) json["resumes_in_seconds"] = seconds(*command.lasts);
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
