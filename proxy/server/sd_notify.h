// sd_notify(): reports the state of the service to systemd, with one datagram to $NOTIFY_SOCKET.
#pragma once

#include <string_view>

namespace carpool::proxy {

// `state`: "READY=1" or "STOPPING=1". Does nothing without NOTIFY_SOCKET; failures are ignored.
void sd_notify(std::string_view state);

}  // namespace carpool::proxy
