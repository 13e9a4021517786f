#include "proxy/peer.h"

#include <sys/socket.h>

#include "proxy/net/address.h"

namespace carpool::proxy {

PeerFacts peer_of(int fd) {
  PeerFacts facts;
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

}  // namespace carpool::proxy
