// The socket of a syslog daemon as the target of a log: one datagram for each line, as the syslog() of the C library
// sends it (RFC 3164, facility daemon).
#pragma once

#include <memory>
#include <string>

#include "proxy/telemetry/log_target.h"

namespace carpool::proxy::log {

// Returns a Fault if no daemon listens on this socket. A daemon that starts again later is found again.
Result<std::unique_ptr<Target>> syslog_target(const std::string& path);

}  // namespace carpool::proxy::log
