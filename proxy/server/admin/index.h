// The page at "/": page.html, embedded at build time. It loads nothing else and shows the data of /events.
#pragma once

#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

Response index_response();

}  // namespace carpool::proxy::admin
