// Log lines of the egress rules: one for each denied request, and one for each route or address that only report_only
// permits.
#pragma once

#include <string_view>

#include "base/result.h"

namespace carpool::proxy {

// Returns true if the egress rules caused this Fault, and not a listener that rejects CONNECT or a loop in Via.
bool denied_by_egress(const Fault& fault);
void log_egress_denied(std::string_view origin, const Fault& fault);
void log_egress_reported(std::string_view origin, const Fault& fault);

}  // namespace carpool::proxy
