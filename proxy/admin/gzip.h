// gzip for answers that are worth it: a scrape shrinks to a tenth. Milliseconds of work: for the background.
#pragma once

#include <cstdint>

#include "proxy/admin/answer.h"
#include "proxy/admin/request.h"

namespace carpool::proxy::admin {

// The client takes gzip, and the body is long enough for it.
bool worth_packing(const AdminRequest& request, const Answer& answer);
// The body is gzip from here on, and says so. Unchanged when zlib has no memory, or all contexts are lent.
void pack(Answer& answer);

// zlib's contexts that there are: they come from a pool and never exceed four.
std::uint32_t packing_contexts();

}  // namespace carpool::proxy::admin
