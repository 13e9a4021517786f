#include "proxy/server/admin/handlers/pool_commands.h"

#include <string>

#include "proxy/server/admin/json.h"
#include "proxy/server/admin/query.h"

namespace carpool::proxy::admin {

Response apply_command(const Call& call, const PoolInfo& pool, PoolAction action) {
  QueryReader query(call.request.target);
  const PoolCommand command{action, query.duration_above_zero("for")};
  if (query.error()) return error_response(400, *query.error());
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
