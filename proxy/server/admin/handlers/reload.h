// POST /reload: reads the configuration again and reports what changed; with ?dry_run=1, what would change.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response reload_route(const Call& call);
// Returns 200; 400 with the errors if it was refused; 409 if a reload is not possible now.
Response reload_response(const ReloadReport& report);

}  // namespace carpool::proxy::admin
