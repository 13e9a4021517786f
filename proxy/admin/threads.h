// GET /threads: who does what, and since when.
#pragma once

#include "proxy/admin/answer.h"
#include "proxy/admin/view.h"

namespace carpool::proxy::admin {

Answer threads_answer(const ThreadsFacts& facts);

}  // namespace carpool::proxy::admin
