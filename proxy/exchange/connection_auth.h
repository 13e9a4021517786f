// Connection-based authentication: whether a request or its response authenticates the connection rather than the
// request. After NTLM or Negotiate the connection belongs to one client until it closes (RFC 4559 §6); another client
// on it would use the identity of the first one.
#pragma once

#include "proxy/http/message.h"

namespace carpool::proxy {

// Returns true if the response offers or completes such an authentication.
bool authenticates_connection(const http::ResponseHead& head);
// Returns true if the request carries such credentials, regardless of the response.
bool authenticates_connection(const http::RequestHead& head);

}  // namespace carpool::proxy
