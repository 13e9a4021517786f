// GET and PUT /log-level: what is worth a line, as a whole and for single modules, changed while the program runs.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response log_level_answer(const Call& call);
// Level and module from the query, else from a JSON body {"level": …, "module": …}.
Response set_log_level_answer(const Call& call);

}  // namespace carpool::proxy::admin
