// Renders leaks: the /leaks response, and the line for one borrower.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "proxy/server/admin/response.h"
#include "proxy/telemetry/leak_record.h"

namespace carpool::proxy::admin {

// Returns a text such as "GET http://a.example/x of 127.0.0.1:5000 (pid 7, uid 1000), receiving the response body".
std::string borrower_text(const BorrowerInfo& borrower);
Response leaks_response(std::vector<LeakRecord> leaks, Instant now);

}  // namespace carpool::proxy::admin
