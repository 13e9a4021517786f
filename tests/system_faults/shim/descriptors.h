// Table of descriptors: how each was made, and where it is registered for readiness.
#pragma once

#include <sys/epoll.h>

#include "control.h"

namespace system_faults {

// Pipes, eventfds and the like transfer within the kernel: neither fails in a correct program.
enum class Made : unsigned char { otherwise, accepted, stream, datagram, local, file };

void note_made(int fd, Made how);
void note_registered(int fd, int epoll, const epoll_event& event);

Function receiving(int fd);
Function sending(int fd);

// Registrations are edge-triggered: a call that reports a socket as not ready must be followed by an event for it. The
// kernel reports a registration that is modified if the socket is ready.
void owe_event(int fd);

}  // namespace system_faults
