// ClientOwner: the client's interface to the list that owns it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "exec/role.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class ClientConnection;
class Listener;
class RequestPacer;

class ClientOwner {
 public:
  // `client` is closed; it is destroyed at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // Moves the connection of a client that speaks HTTP/2 to an H2Client, with the bytes already read. The caller closes
  // at once and is no longer counted.
  virtual void upgrade_to_h2(Listener& listener, std::unique_ptr<net::Transport> transport, std::string peer,
                             std::string_view bytes) LOOP_ONLY = 0;
  virtual RequestPacer& pacer() LOOP_ONLY = 0;

 protected:
  ~ClientOwner() = default;
};

}  // namespace carpool::proxy
