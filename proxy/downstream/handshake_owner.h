// HandshakeOwner: a ClientHandshake's interface to the list that owns it.
#pragma once

#include <memory>
#include <string>

#include "exec/role.h"

namespace carpool::exec {
class Submitter;
}
namespace carpool::proxy::net {
class Transport;
}

namespace carpool::proxy {

class ClientConnection;
class Listener;

class HandshakeOwner {
 public:
  // `client` is over; it is destroyed at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // A handshake begins. Returns what runs its steps that compute; nullptr: the loop itself.
  virtual exec::Submitter* tasks_for_handshake() LOOP_ONLY = 0;
  // The handshake is complete: `transport` becomes the connection of another client, which counts in place of the one
  // that is over.
  virtual void established(Listener& listener, std::unique_ptr<net::Transport> transport,
                           std::string peer) LOOP_ONLY = 0;

 protected:
  ~HandshakeOwner() = default;
};

}  // namespace carpool::proxy
