// PlainTransport: a Transport without encryption over a stream socket, TCP or Unix.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/fd.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::net {

// `socket` is accepted or connected, in any state.
std::unique_ptr<Transport> make_plain(Fd socket);

// The same for a prepared socket: accept4 made it non-blocking and close-on-exec, and it inherited TCP_NODELAY from its
// listener. Saves three system calls per client.
std::unique_ptr<Transport> make_accepted(Fd socket);

// Sets non-blocking, close-on-exec and TCP_NODELAY, which every stream socket here has.
void prepare_socket(int fd);

// Returns the number of bytes in the socket's send queue: those that its peer's system has not acknowledged, with TCP,
// or that its peer has not read. 0 if the system does not tell.
std::uint32_t send_queue_size(int fd);
// The implementation of Transport::unacknowledged(): the same, but 0 unless the socket is one of TCP.
std::size_t unacknowledged(int fd);

// Reads without consuming, again if a signal interrupts: the result and errno are those of recv().
ssize_t peek(int fd, void* into, std::size_t size);

}  // namespace carpool::proxy::net
