// WebSocket over HTTP/2 (RFC 8441) to an origin that uses HTTP/1.1: an extended CONNECT becomes the handshake of RFC
// 6455 with a key generated here, and the origin's response is verified against that key.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy {

// Rewrites the head of an extended CONNECT to GET with Upgrade. Returns the generated key, or an empty text if the
// protocol is not websocket (other protocols are offered unchanged).
std::string ask_for_upgrade(http::RequestHead& head);
// Returns true if the origin's response matches `key`.
bool accepts(const http::ResponseHead& head, std::string_view key);

}  // namespace carpool::proxy
