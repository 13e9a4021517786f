#include "proxy/net/peer_credentials.h"

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string_view>

#include "proxy/net/address.h"
#include "proxy/net/loopback_owner.h"

namespace carpool::proxy {

namespace {
enum class Key : std::uint8_t { connection = 1, process, address, user };

// The low bits are the kind of the key.
std::uint64_t tagged(std::uint64_t value, Key kind) {
  return value << 3 | static_cast<std::uint64_t>(kind);
}
}  // namespace

PeerCredentials peer_of(int fd) {
  PeerCredentials peer_credentials;
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return peer_credentials;
  if (peer.ss_family != AF_UNIX) {
    peer_credentials.address = net::Address(reinterpret_cast<sockaddr*>(&peer), length).text();
    if (const auto owner = net::owner_of_peer(fd)) {
      peer_credentials.uid = owner->uid;
      peer_credentials.inode = owner->inode;
    }
    return peer_credentials;
  }
  peer_credentials.address = "unix";
  ucred credentials{};
  length = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
    peer_credentials.pid = credentials.pid;
    peer_credentials.uid = credentials.uid;
  }
  return peer_credentials;
}

bool same_user(const PeerCredentials& peer) {
  return peer.pid && peer.uid && (*peer.uid == 0 || *peer.uid == static_cast<std::int64_t>(::geteuid()));
}

std::uint64_t fairness_key_of(int fd) {
  const std::uint64_t connection = tagged(static_cast<std::uint32_t>(fd), Key::connection);
  const net::Address peer = net::Address::peer_of(fd);
  if (peer.ip()) {
    if (peer.loopback()) return connection;
    const net::Address plain = peer.unmapped();
    return tagged(std::hash<std::string_view>{}(plain.bytes()), Key::address);
  }
  const PeerCredentials peer_credentials = peer_of(fd);
  return peer_credentials.pid ? fairness_key_of_process(*peer_credentials.pid) : connection;
}

std::uint64_t fairness_key_of_host(std::string_view host) {
  return tagged(std::hash<std::string_view>{}(host), Key::address);
}

std::uint64_t fairness_key_of_process(std::int64_t pid) {
  return tagged(static_cast<std::uint64_t>(pid), Key::process);
}

std::uint64_t fairness_key_of_user(std::uint32_t uid, std::uint64_t cgroup) {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15;
  return tagged((cgroup * kGoldenRatio) ^ uid, Key::user);
}

}  // namespace carpool::proxy
