// Creates a listening socket, TCP or Unix, from its configured address.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/address.h"
#include "proxy/net/socket_access.h"

namespace carpool::proxy::net {

struct Bound {
  Fd fd;            // non-blocking, listening
  Address address;  // with the actual port
};

// Replaces a Unix socket file without a listener, but never a live one. The Fault contains the address and the system's
// error text. The file of a Unix socket never grants more than `access`, from its creation on.
Result<Bound> bind_and_listen(const std::string& address, int backlog, const SocketAccess& access = {});
// As bind_and_listen(); the file of a Unix socket has mode 0600.
Result<Bound> bind_for_owner(const std::string& address, int backlog);
void remove_socket_file(const Address& address);

}  // namespace carpool::proxy::net
