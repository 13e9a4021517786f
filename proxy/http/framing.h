// What a head's fields say about the message as a whole: where its body ends, whether the connection goes on, what the
// sender expects (RFC 9112 §6.3, §9.3). One place decides; a doubt is a refusal.
#pragma once

#include "base/result.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Faults: malformed_request, not_implemented.
Status settle(RequestHead& head);
// `bodiless`: the answer to HEAD, or to a CONNECT that succeeded. Fault: malformed_response.
Status settle(ResponseHead& head, bool bodiless);

}  // namespace carpool::proxy::http
