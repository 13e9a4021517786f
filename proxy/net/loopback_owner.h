// The owner of the other end of a TCP connection within this host's network namespace, which the kernel identifies by
// its addresses (sock_diag(7)). Every process of a pod has the address 127.0.0.1; this distinguishes them.
#pragma once

#include <cstdint>
#include <optional>

namespace carpool::proxy::net {

struct SocketOwner {
  std::uint32_t uid = 0;
  std::uint32_t inode = 0;   // of the socket, as in /proc/PID/fd
  std::uint64_t cgroup = 0;  // of the process that made it: its container; 0: the kernel does not report it
};

// Returns true if the kernel identifies owners. Tests it once and keeps the result. The first call may wait for a
// module of the kernel (tcp_diag), as each query would where there is none: it must not be on a loop.
bool kernel_names_owners();

// Returns nullopt if the peer is not on loopback, is gone, or the kernel does not identify owners. Costs a few system
// calls on a netlink socket of this thread, which replies at once.
std::optional<SocketOwner> owner_of_peer(int fd);

}  // namespace carpool::proxy::net
