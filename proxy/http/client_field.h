// The value of X-Forwarded-For or Forwarded (RFC 7239) that names the client to an origin. The origin reads it after
// what the request itself carries, as one more member of that list.
#pragma once

#include <array>
#include <string_view>

namespace carpool::proxy::http {

// The longest value: a quoted IPv6 address and the scheme.
using ClientFieldText = std::array<char, 80>;

// `peer`: "192.0.2.1:5000", "[2001:db8::1]:5000" or anything else, which becomes `unknown`. The views live in `text`.
std::string_view x_forwarded_for(std::string_view peer, ClientFieldText& text);
std::string_view forwarded(std::string_view peer, bool secured, ClientFieldText& text);

}  // namespace carpool::proxy::http
