// Creates a listening socket, TCP or Unix, from its configured address.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {

struct Bound {
  Fd fd;            // non-blocking, listening
  Address address;  // with the actual port
};

// Replaces a Unix socket file without a listener, but never a live one. The Fault contains the address and the system's
// error text.
Result<Bound> bind_and_listen(const std::string& address, int backlog);
// As bind_and_listen(); the file of a Unix socket has mode 0600 from its creation. Changes the umask meanwhile: before
// other threads create files.
Result<Bound> bind_for_owner(const std::string& address, int backlog);
void remove_socket_file(const Address& address);

}  // namespace carpool::proxy::net
