// Tells whoever started us that we serve: systemd's protocol, one datagram to $NOTIFY_SOCKET.
#pragma once

#include <string_view>

namespace carpool::proxy {

// "READY=1", "STOPPING=1". Does nothing without NOTIFY_SOCKET; a failure is not ours to act on.
void sd_notify(std::string_view state);

}  // namespace carpool::proxy
