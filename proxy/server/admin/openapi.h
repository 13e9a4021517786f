// GET /openapi.json: the machine-readable description of the admin endpoint, generated from the table of routes.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response openapi_response(const Call& call);

}  // namespace carpool::proxy::admin
