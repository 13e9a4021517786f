#include "proxy/server/admin/handlers/pool_commands.h"

#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {

Response pool_order_answer(PoolCommand order) {
  switch (order) {
    case PoolCommand::pause:
      return json_answer(200, {{"status", "paused"}});
    case PoolCommand::resume:
      return json_answer(200, {{"status", "resumed"}});
    case PoolCommand::drain:
      return json_answer(200, {{"status", "draining; `resume` ends it"}});
    case PoolCommand::reconnect:
      return json_answer(200, {{"status", "reconnecting"}});
  }
  return error_answer(500, "no such order");
}

}  // namespace carpool::proxy::admin
