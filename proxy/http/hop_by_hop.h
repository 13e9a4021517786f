// Decides which fields of a head are forwarded, whatever HTTP version each side uses (RFC 9110 §7.6.1).
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/http/connection_options.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Returns true if field `i` of a request is forwarded unchanged.
bool passes(const RequestHead& head, std::size_t i, const ConnectionOptions& options, const ForwardRules& rules);
// The same for a response. `length`: Content-Length describes a body that is not sent (HEAD, 304).
bool returns(const Fields& fields, std::size_t i, const ConnectionOptions& options, bool length);
// Returns true if TE lists "trailers", the only member that is not about this hop's codings.
bool wants_trailers(const Fields& fields);
// Returns true if the request validly accepts trailers: HTTP/1.1 must also list TE in Connection.
bool asks_for_trailers(const RequestHead& head, const ConnectionOptions& options);
// Returns true if the Upgrade field of a 101 names protocols, at most 16, all of which the request offered (RFC 9110
// §7.8). H2c is never offered to an origin.
bool switches_as_offered(const Fields& request, const Fields& switched);
std::string_view protocol_version(Version version);  // as in Via

}  // namespace carpool::proxy::http
