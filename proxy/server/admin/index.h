// The page at "/": page.html, which is embedded when carpool is built, loads nothing but itself, and shows what /events
// tells.
#pragma once

#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

Response index_answer();

}  // namespace carpool::proxy::admin
