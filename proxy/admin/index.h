// The page at "/": what runs, its pools, and where to read on. No script, no foreign resource.
#pragma once

#include "proxy/admin/answer.h"
#include "proxy/admin/view.h"

namespace carpool::proxy::admin {

Answer index_answer(const AdminView& view);

}  // namespace carpool::proxy::admin
