// The value of X-Forwarded-For or Forwarded (RFC 7239) that names the client to an origin. It follows the request's own
// fields of that name, so that the origin reads it as one more member of their list.
#pragma once

#include <array>
#include <string_view>

namespace carpool::proxy::http {

// The longest value: a quoted IPv6 address and the scheme.
using ClientFieldText = std::array<char, 80>;

// `peer`: "192.0.2.1:5000", "[2001:db8::1]:5000" or anything else, which becomes `unknown`. The result points into
// `text`.
std::string_view x_forwarded_for(std::string_view peer, ClientFieldText& text);
std::string_view forwarded(std::string_view peer, bool secured, ClientFieldText& text);

}  // namespace carpool::proxy::http
