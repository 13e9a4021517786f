// POST /reload: reads the configuration again and says what changed; with ?dry_run=1, what would.
#pragma once

#include "proxy/admin/route.h"

namespace carpool::proxy::admin {

Answer reload_answer(const Call& call);

}  // namespace carpool::proxy::admin
