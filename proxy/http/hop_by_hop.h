// Which fields of a head go on past this hop, whatever version of HTTP is spoken on either side (RFC 9110 §7.6.1).
#pragma once

#include <cstddef>
#include <string_view>

#include "proxy/http/connection_options.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Does field i of a request go on as it is?
bool passes(const RequestHead& head, std::size_t i, const ConnectionOptions& options, const ForwardRules& rules);
// And of a response. `length`: Content-Length tells of a body that does not come (HEAD, 304).
bool returns(const Fields& fields, std::size_t i, const ConnectionOptions& options, bool length);
// "trailers" is the one member of TE that does not speak of this hop's codings.
bool wants_trailers(const Fields& fields);
// Did it say so where it counts? HTTP/1.1 has to name TE in Connection.
bool asks_for_trailers(const RequestHead& head, const ConnectionOptions& options);
std::string_view protocol_version(Version version);  // as Via names it

}  // namespace carpool::proxy::http
