// append_combined(): a line in the "combined" format of Apache and nginx, which programs for web server logs read.
#pragma once

#include <string>
#include <string_view>

#include "proxy/telemetry/access_entry.h"
#include "proxy/telemetry/log_line.h"

namespace carpool::proxy::log {

// `target` and `referer` are redacted already. An absent value is "-".
void append_combined(std::string& out, const AccessEntry& entry, WallTime time, std::string_view target,
                     std::string_view referer);

}  // namespace carpool::proxy::log
