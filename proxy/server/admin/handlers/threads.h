// GET /threads: what each thread is doing, and since when.
#pragma once

#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response threads_response(const ThreadsInfo& info);

}  // namespace carpool::proxy::admin
