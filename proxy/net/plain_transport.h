// PlainTransport: bytes over a stream socket, TCP or Unix, with nothing in between.
#pragma once

#include <memory>

#include "proxy/net/transport.h"

namespace carpool::proxy::net {

// Takes the descriptor over, in any state it was accepted or connected in.
std::unique_ptr<Transport> make_plain(int fd);

// The same for one that is prepared already: accept4 made it non-blocking and close-on-exec, and what its listener said
// about delays is inherited. Saves three system calls a client.
std::unique_ptr<Transport> make_accepted(int fd);

// Non-blocking, close-on-exec, no delay of small writes. What every stream socket of the house has.
void prepare_socket(int fd);

// One look at the wire without taking anything from it.
enum class Glance { silent, data, ended };
Glance glance(int fd);

}  // namespace carpool::proxy::net
