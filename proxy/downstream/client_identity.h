// ClientIdentity: identifies the client for the fair shares of a busy pool. Determined when the first request of a
// connection has to wait: on TCP by the remote address, behind a load balancer by the address that the PROXY header
// announced, on a Unix socket by the process, and on loopback, where all clients have the same address, by the owner of
// the socket (listen.loopback_client). ClientPeer: its address as text, for logs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "exec/role.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

struct ExchangeContext;

// Returns the address, without the port, of a client that a PROXY header announced ("192.0.2.1:5000").
std::string_view announced_host(std::string_view peer);

class ClientIdentity {
 public:
  // Returns the key; never 0. It changes at most once, when the process of a client on loopback is found. `peer`: the
  // announced address, on a listener with proxy_protocol.
  std::uint64_t key(const ExchangeContext& context, const config::Listen& listen, int fd,
                    std::string_view peer) LOOP_ONLY;

 private:
  std::uint64_t of_loopback(const ExchangeContext& context, config::LoopbackClient by, int fd) LOOP_ONLY;

  std::uint64_t key_ = 0;    // 0: not determined
  std::uint32_t inode_ = 0;  // socket of a client on loopback whose process is being determined; key_ is its user's
};

// Reads the address from the socket when it is first needed, unless a PROXY header announced it. Small, because every
// idle client has one.
class ClientPeer {
 public:
  explicit ClientPeer(std::string_view announced) { keep(announced); }

  std::string_view name(int fd) const;  // `fd`: the client's socket
  // Returns what is known without the socket, for its next owner: the announced address, or the one that name() has
  // read; otherwise an empty text.
  std::string_view known() const { return name_ == nullptr ? std::string_view() : std::string_view(name_.get()); }

 private:
  void keep(std::string_view name) const;
  mutable std::unique_ptr<char[]> name_;  // a terminated text; nullptr: not known
};

}  // namespace carpool::proxy
