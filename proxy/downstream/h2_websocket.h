// WebSocket over HTTP/2 (RFC 8441) to an origin that speaks HTTP/1.1: an extended CONNECT becomes the handshake of RFC
// 6455, with a key of our own, and its answer is checked where the origin can be held to it.
#pragma once

#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy {

// Rewrites the head of an extended CONNECT into GET with Upgrade; returns the key that was drawn, empty where the
// protocol is not websocket (other tokens are offered as they are).
std::string ask_for_upgrade(http::RequestHead& head);
// Did the origin answer that key?
bool accepts(const http::ResponseHead& head, std::string_view key);

}  // namespace carpool::proxy
