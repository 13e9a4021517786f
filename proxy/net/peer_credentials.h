// Who is at the other end of a client's socket, asked when somebody wants to know, not when it connects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace carpool::proxy {

struct PeerCredentials {
  std::string address;                   // "127.0.0.1:5000"; of a Unix socket "unix"
  std::optional<std::int64_t> pid, uid;  // of the process that connected, on a Unix socket
};

PeerCredentials peer_of(int fd);
// On a Unix socket: root, or the user that this program runs as.
bool same_user(const PeerCredentials& peer);

// Whose turn it is where clients take turns; equal for connections of one client, never 0. A Unix socket's process, a
// remote address; of what comes over loopback, where all have one address, the connection.
std::uint64_t fairness_key_of(int fd);

}  // namespace carpool::proxy
