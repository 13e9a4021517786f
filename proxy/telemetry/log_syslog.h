// Log target for the socket of a syslog daemon: one datagram per line, as the C library's syslog() sends it (RFC 3164,
// facility `daemon`).
#pragma once

#include <memory>
#include <string>

#include "proxy/telemetry/log_target.h"

namespace carpool::proxy::log {

// Returns a Fault if no daemon listens on this socket. The target reconnects to a daemon that was restarted.
Result<std::unique_ptr<Target>> syslog_target(const std::string& path);

}  // namespace carpool::proxy::log
