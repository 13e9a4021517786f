// GET /history: the points of the last 15 minutes, of all origins or of one.
#pragma once

#include "proxy/server/admin/route.h"

namespace carpool::proxy::admin {

Response history_response(const Call& call);

}  // namespace carpool::proxy::admin
