// POST /reload: reads the configuration again and says what changed; with ?dry_run=1, what would.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response reload_route(const Call& call);
// 200; 400 with the mistakes when it was refused, 409 when it cannot be now.
Response reload_answer(const ReloadReport& report);

}  // namespace carpool::proxy::admin
