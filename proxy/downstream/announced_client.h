// AnnouncedClient: a client of a listener with proxy_protocol until the header that names it has arrived; then the
// connection becomes that of an H1Client or a ClientHandshake. The header has the listener's header_timeout. Only peers
// that listen.trusted names are accepted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exec/loop.h"
#include "metrics/events.h"
#include "proxy/config/config.h"
#include "proxy/downstream/client_connection.h"

namespace carpool::proxy {

struct ExchangeContext;
class Listener;

class AnnouncedClient final : public ClientConnection, private exec::Watcher {
 public:
  class Owner {
   public:
    // `client` is over; it is destroyed at the end of the turn.
    virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
    // `socket` is that of the client with the address `peer`, which counts in place of the one that is over.
    virtual void announced(Listener& listener, Fd socket, std::string peer) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };

  AnnouncedClient(const ExchangeContext& context, Owner& owner, Listener& listener, Fd socket);
  ~AnnouncedClient() override;
  // Registers the socket. On failure, and if the peer is not trusted, the caller drops the client.
  Status start() LOOP_ONLY;

  Listener* listener() const override { return handed_on_ ? nullptr : &listener_; }
  void drain() override LOOP_ONLY { end(); }
  void start_graceful_close() override LOOP_ONLY {}  // its client closes gracefully once it is named
  bool end_if_idle() override LOOP_ONLY;
  void end() override LOOP_ONLY;

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void pass_on(const std::optional<std::string>& client, std::size_t header) LOOP_ONLY;
  void refuse(metrics::ProxyHeader why) LOOP_ONLY;
  void on_deadline();
  void close() LOOP_ONLY;

  const ExchangeContext& context_;
  Owner& owner_;
  Listener& listener_;
  Fd socket_;
  exec::WatchKey key_;
  exec::Timer deadline_;
  bool over_ = false;
  bool handed_on_ = false;
};

// Returns true if one of `trusted` (listen.trusted) names the peer; those of a Unix socket are trusted.
bool may_announce(const std::vector<std::string>& trusted, int socket);

}  // namespace carpool::proxy
