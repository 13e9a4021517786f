// SHA-1 and base64 for the WebSocket handshake (RFC 6455 §4.2.2); SHA-256 of the secrets of clients.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace carpool::proxy::tls {

std::string sha1(std::string_view bytes);  // returns 20 bytes
using Sha256 = std::array<std::uint8_t, 32>;
Sha256 sha256(std::string_view bytes);  // allocates nothing
bool equal_in_constant_time(const Sha256& a, const Sha256& b);
std::string base64(std::string_view bytes);

}  // namespace carpool::proxy::tls
