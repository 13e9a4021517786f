#include "proxy/net/peer_credentials.h"

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string_view>

#include "proxy/net/address.h"

namespace carpool::proxy {

PeerCredentials peer_of(int fd) {
  PeerCredentials facts;
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return facts;
  if (peer.ss_family != AF_UNIX) {
    facts.address = net::Address(reinterpret_cast<sockaddr*>(&peer), length).text();
    return facts;
  }
  facts.address = "unix";
  ucred who{};
  length = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0) {
    facts.pid = who.pid;
    facts.uid = who.uid;
  }
  return facts;
}

std::string_view peer_name(int fd, std::string& name) {
  if (name.empty()) name = net::Address::peer_of(fd).text();
  return name;
}

bool same_user(const PeerCredentials& peer) {
  return peer.uid && (*peer.uid == 0 || *peer.uid == static_cast<std::int64_t>(::geteuid()));
}

std::uint64_t fairness_key_of(int fd) {
  constexpr std::uint64_t kConnection = 1, kProcess = 2, kAddress = 3;  // low bits: the kind of the key
  const auto number = static_cast<std::uint64_t>(static_cast<std::uint32_t>(fd));
  const net::Address peer = net::Address::peer_of(fd);
  if (peer.ip()) {
    if (peer.loopback()) return number << 2 | kConnection;
    const net::Address plain = peer.unmapped();
    return std::hash<std::string_view>{}(plain.bytes()) << 2 | kAddress;
  }
  const PeerCredentials facts = peer_of(fd);
  return facts.pid ? static_cast<std::uint64_t>(*facts.pid) << 2 | kProcess : number << 2 | kConnection;
}

}  // namespace carpool::proxy
