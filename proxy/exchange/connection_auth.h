// Does this answer authenticate a connection rather than a request? After NTLM or Negotiate the connection belongs to
// one client until it closes (RFC 4559 §6): lending it to another would lend the first one's identity.
#pragma once

#include "proxy/http/message.h"

namespace carpool::proxy {

bool authenticates_connection(const http::ResponseHead& head);
// The same of a request that comes with such credentials, whatever the answer says.
bool authenticates_connection(const http::RequestHead& head);

}  // namespace carpool::proxy
