// GET /openapi.json: the admin endpoint described for machines, made from the table of routes.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response openapi_response(const Call& call);

}  // namespace carpool::proxy::admin
