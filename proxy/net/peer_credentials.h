// PeerCredentials: identifies the peer of a client socket. Read on demand, not at accept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carpool::proxy {

struct PeerCredentials {
  std::string address;  // "127.0.0.1:5000"; "unix" for a Unix socket
  // The process that connected through a Unix socket; `uid` and the socket's `inode` also of one on loopback.
  std::optional<std::int64_t> pid, uid;
  std::optional<std::uint64_t> inode;
};

PeerCredentials peer_of(int fd);
// Returns true on a Unix socket whose peer is root or the user of this process.
bool same_user(const PeerCredentials& peer);

// Keys for fair queueing among clients; equal for connections of one client, never 0. fairness_key_of(): the process of
// a Unix socket or the remote address; for loopback, where all share one address, the connection.
std::uint64_t fairness_key_of(int fd);
std::uint64_t fairness_key_of_host(std::string_view host);
std::uint64_t fairness_key_of_process(std::int64_t pid);
std::uint64_t fairness_key_of_user(std::uint32_t uid, std::uint64_t cgroup);

}  // namespace carpool::proxy
