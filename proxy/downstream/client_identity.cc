#include "proxy/downstream/client_identity.h"

#include "proxy/exchange/exchange_context.h"
#include "proxy/net/address.h"
#include "proxy/net/loopback_owner.h"
#include "proxy/net/peer_credentials.h"
#include "proxy/net/socket_processes.h"

namespace carpool::proxy {

std::string_view announced_host(std::string_view peer) {
  return peer.substr(0, peer.rfind(':'));
}

std::string_view ClientPeer::name(int fd) const {
  if (name_ == nullptr) keep(net::Address::peer_of(fd).text());
  return known();
}

void ClientPeer::keep(std::string_view name) const {
  if (name.empty()) return;
  name_ = std::make_unique<char[]>(name.size() + 1);
  name.copy(name_.get(), name.size());
}

std::uint64_t ClientIdentity::key(const ExchangeContext& context, const config::Listen& listen, int fd,
                                  std::string_view peer) {
  if (key_ != 0 && inode_ == 0) return key_;
  if (listen.proxy_protocol) return key_ = fairness_key_of_host(announced_host(peer));
  if (listen.loopback_client != config::LoopbackClient::connection) {
    if (const std::uint64_t key = of_loopback(context, listen.loopback_client, fd); key != 0) return key;
  }
  return key_ = fairness_key_of(fd);
}

// Returns 0 if the peer is not on loopback or the kernel does not identify its owner. The first process of a user keeps
// the user's key: usually it is the only one, and its connections must not be two clients, those whose process is known
// and those whose process is not.
std::uint64_t ClientIdentity::of_loopback(const ExchangeContext& context, config::LoopbackClient by, int fd) {
  if (inode_ == 0) {
    const auto owner = net::owner_of_peer(fd);
    if (!owner) return 0;
    inode_ = owner->inode;
    key_ = fairness_key_of_user(owner->uid, owner->cgroup);
  }
  if (by == config::LoopbackClient::process && context.processes != nullptr) {
    const net::SocketProcesses::Owner owner = context.processes->find(inode_, *context.tasks, context.loop.now());
    if (!owner.known) return key_;
    const bool as_user = owner.pid == 0 || context.processes->first_of(key_, owner.pid);
    if (!as_user) key_ = fairness_key_of_process(owner.pid);
  }
  inode_ = 0;
  return key_;
}

}  // namespace carpool::proxy
