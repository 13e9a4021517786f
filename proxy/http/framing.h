// Derives from a head's fields where its body ends, whether the connection persists, and what the sender expects (RFC
// 9112 §6.3, §9.3). No other code decides this; an ambiguous message is rejected.
#pragma once

#include "base/result.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Faults: malformed_request, not_implemented.
Status resolve_framing(RequestHead& head);
// `bodiless`: the response to HEAD or to a successful CONNECT. Fault: malformed_response.
Status resolve_framing(ResponseHead& head, bool bodiless);

}  // namespace carpool::proxy::http
