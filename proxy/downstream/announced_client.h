// AnnouncedClient: a connection of a listener with proxy_protocol until the PROXY header has arrived. The connection
// then passes to an H1Client or a ClientHandshake. The header must arrive within the listener's header_timeout. Only
// peers that listen.trusted names are accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exec/loop.h"
#include "metrics/events.h"
#include "proxy/config/config.h"
#include "proxy/downstream/opening_client.h"

namespace carpool::proxy {

class AnnouncedClient final : public OpeningClient, private exec::Watcher {
 public:
  class Owner {
   public:
    // Destroys `client`, which has ended, at the end of the turn.
    virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
    // `socket` is the connection of the client with the address `peer`, which is counted in place of the
    // AnnouncedClient. `drains`: the AnnouncedClient was drained.
    virtual void announced(Listener& listener, Fd socket, std::string peer, bool drains) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };

  AnnouncedClient(const ExchangeContext& context, Owner& owner, Listener& listener, Fd socket);
  ~AnnouncedClient() override;
  // Registers the socket. If that fails or the peer is not trusted, the caller drops the client.
  Status start() LOOP_ONLY;

  Listener* listener() const override { return handed_on_ ? nullptr : &listener_; }
  void end() override LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void pass_on(const std::optional<std::string>& client, std::size_t header) LOOP_ONLY;
  void refuse(metrics::ProxyHeader why) LOOP_ONLY;
  void on_deadline() override;
  void close() LOOP_ONLY;

  Owner& owner_;
  Fd socket_;
  exec::WatchKey key_;
  bool handed_on_ = false;
};

// Returns true if `trusted` (listen.trusted) names the peer. Peers of a Unix socket are always trusted.
bool may_announce(const std::vector<std::string>& trusted, int socket);

}  // namespace carpool::proxy
