// The name of this proxy in Via (RFC 9110 §7.6.3 allows a pseudonym instead of a host name).
#pragma once

#include <cstdint>
#include <string>

namespace carpool::proxy::http {

// Returns "carpool-" and eight hexadecimal digits. Draws until no three letters are in a row: such a name contains no
// word ("abc", "bad", "deadbeef") for which a filter or a test searches a message.
std::string draw_pseudonym(std::uint32_t (&draw)());

}  // namespace carpool::proxy::http
