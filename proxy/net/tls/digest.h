// The two transforms that a handshake of WebSocket needs (RFC 6455 §4.2.2).
#pragma once

#include <string>
#include <string_view>

namespace carpool::proxy::tls {

std::string sha1(std::string_view bytes);  // 20 bytes
std::string base64(std::string_view bytes);

}  // namespace carpool::proxy::tls
