// GET and PUT /log-level: the log level, global and per module, changed while the program runs.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response log_level_response(const Call& call);
// Takes level and module from the query, otherwise from a JSON body {"level": …, "module": …}.
Response set_log_level_response(const Call& call);

}  // namespace carpool::proxy::admin
