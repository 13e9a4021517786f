#include "proxy/server/admin/handlers/pool_commands.h"

#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {

Answer pool_order_answer(PoolOrder order) {
  switch (order) {
    case PoolOrder::pause:
      return json_answer(200, {{"status", "paused"}});
    case PoolOrder::resume:
      return json_answer(200, {{"status", "resumed"}});
    case PoolOrder::drain:
      return json_answer(200, {{"status", "draining; resume ends it"}});
    case PoolOrder::reconnect:
      return json_answer(200, {{"status", "reconnecting"}});
  }
  return error_answer(500, "no such order");
}

}  // namespace carpool::proxy::admin
