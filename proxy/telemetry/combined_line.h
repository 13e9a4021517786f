// append_combined(): appends a line in the "combined" format of Apache and nginx, which web log analysers read.
#pragma once

#include <string>
#include <string_view>

#include "proxy/telemetry/access_entry.h"
#include "proxy/telemetry/log_line.h"

namespace carpool::proxy::log {

// `target` and `referer` must already be redacted. An absent value is written as "-".
void append_combined(std::string& out, const AccessEntry& entry, WallTime time, std::string_view target,
                     std::string_view referer);

}  // namespace carpool::proxy::log
