// ClientOwner: the list that owns a loop's clients, as a client knows it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "exec/role.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class ClientConnection;
class Listener;

class ClientOwner {
 public:
  // `client` is closed: it is destroyed at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // A client turned out to speak HTTP/2: another object takes its connection over, with the bytes that were read. The
  // caller closes at once and counts no more.
  virtual void upgrade_to_h2(Listener& listener, std::unique_ptr<net::Transport> transport, std::string peer,
                             std::string_view bytes) LOOP_ONLY = 0;

 protected:
  ~ClientOwner() = default;
};

}  // namespace carpool::proxy
