// SHA-1 and base64 for the WebSocket handshake (RFC 6455 §4.2.2).
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::tls {

std::string sha1(std::string_view bytes);  // returns 20 bytes
std::string base64(std::string_view bytes);

}  // namespace carpool::proxy::tls
