// A listening socket from its configured address, TCP or Unix.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

struct Bound {
  Fd fd;            // non-blocking, listening
  Address address;  // with the real port
};

// A socket file that nobody listens on any more is replaced; a live one is not. The Fault names the address and the
// system's reason.
Result<Bound> bind_and_listen(const std::string& address, int backlog);
void remove_socket_file(const Address& address);

}  // namespace carpool::proxy::net
