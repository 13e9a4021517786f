// Reason phrases of the statuses that local replies use (RFC 9110 §15).
#pragma once

#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

std::string_view reason_phrase(std::uint16_t status);

}  // namespace carpool::proxy::http
