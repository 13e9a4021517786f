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
  // `client` is over; it is destroyed at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // A handshake begins. Returns what runs its steps that compute; nullptr: the loop itself.
  virtual exec::Submitter* tasks_for_handshake() LOOP_ONLY = 0;
  virtual HandshakeTurns& handshake_turns() LOOP_ONLY = 0;  // of the steps that it runs
  // The handshake is complete: `transport` becomes the connection of another client, which counts in place of the one
  // that is over.
  // `point`: of its requests, if it is not the listener's own.
  virtual void established(Listener& listener, std::unique_ptr<const ListenPoint> point,
                           std::unique_ptr<net::Transport> transport, std::string peer) LOOP_ONLY = 0;
  // The bytes of a client whose CONNECT was answered are no TLS that can end here: the CONNECT becomes a tunnel, as
  // above.
  virtual void tunnel(Listener& listener, InterceptedConnect& connect, metrics::Intercept why, Fd socket,
                      std::string peer) LOOP_ONLY = 0;
  virtual ConnectInterceptor& interceptor() LOOP_ONLY = 0;

 protected:
  ~HandshakeOwner() = default;
};

}  // namespace carpool::proxy
