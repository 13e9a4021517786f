// Derives from a head's fields where its body ends, whether the connection persists, and what the sender expects (RFC
// 9112 §6.3, §9.3). No other code decides this; a message whose end is ambiguous is rejected.
#pragma once

#include "base/result.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Faults: malformed_request, not_implemented.
Status resolve_framing(RequestHead& head);
// `bodiless`: the response to HEAD or to a successful CONNECT. Fault: malformed_response.
Status resolve_framing(ResponseHead& head, bool bodiless);
// Returns true for one valid Content-Length without Transfer-Encoding. Only such a length is passed on with a message
// that has no content (RFC 9110 §8.6).
bool announces_length(const Fields& fields);

}  // namespace carpool::proxy::http
