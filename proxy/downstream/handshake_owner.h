// HandshakeOwner: a ClientHandshake's interface to the list that owns it.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "exec/role.h"
#include "metrics/events.h"

namespace carpool::exec {
class Submitter;
}
namespace carpool::proxy::net {
class Transport;
}

namespace carpool::proxy {

class ClientConnection;
class ConnectInterceptor;
class HandshakeTurns;
class Listener;
class ListenPoint;
struct InterceptedConnect;

class HandshakeOwner {
 public:
  // Destroys `client`, which has ended, at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // Must be called when a handshake begins. Returns the executor of its computations; nullptr: the loop itself.
  virtual exec::Submitter* tasks_for_handshake() LOOP_ONLY = 0;
  virtual HandshakeTurns& handshake_turns() LOOP_ONLY = 0;  // limits the steps that run on that executor
  // Passes the connection after a complete handshake: `transport` becomes the connection of another client, which is
  // counted in place of the ClientHandshake. `point`: the point of its requests, if it is not the listener's own.
  // `drains`: the ClientHandshake was drained.
  virtual void established(Listener& listener, std::unique_ptr<const ListenPoint> point,
                           std::unique_ptr<net::Transport> transport, std::string peer, bool drains) LOOP_ONLY = 0;
  // Turns an answered CONNECT into a tunnel, as above, because the client's bytes are not TLS that can be intercepted.
  virtual void tunnel(Listener& listener, InterceptedConnect& connect, metrics::Intercept why, Fd socket,
                      std::string peer, bool drains) LOOP_ONLY = 0;
  virtual ConnectInterceptor& interceptor() LOOP_ONLY = 0;

 protected:
  ~HandshakeOwner() = default;
};

}  // namespace carpool::proxy
