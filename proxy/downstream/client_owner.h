// ClientOwner: a client's interface to the list that owns it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "exec/role.h"
#include "proxy/net/transport.h"

namespace carpool::proxy {

class ClientConnection;
class ConnectInterceptor;
class Listener;
class ListenPoint;
struct InterceptedConnect;
class RequestPacer;

class ClientOwner {
 public:
  // Destroys `client`, which has closed, at the end of the turn.
  virtual void destroy_later(ClientConnection& client) LOOP_ONLY = 0;
  // Passes the connection of a client that uses HTTP/2 to an H2Client, with the bytes already read. The caller closes
  // at once and is no longer counted. `point`: the point of its requests, if it is not the listener's own. `drains`:
  // the caller was about to close gracefully.
  virtual void upgrade_to_h2(Listener& listener, std::unique_ptr<const ListenPoint> point,
                             std::unique_ptr<net::Transport> transport, std::string peer, std::string_view bytes,
                             bool drains) LOOP_ONLY = 0;
  // Passes the connection of a client whose CONNECT was answered to a ClientHandshake, as above.
  virtual void intercept(Listener& listener, std::unique_ptr<InterceptedConnect> connect, Fd socket, std::string peer,
                         bool drains) LOOP_ONLY = 0;
  virtual ConnectInterceptor& interceptor() LOOP_ONLY = 0;
  virtual RequestPacer& pacer() LOOP_ONLY = 0;

 protected:
  ~ClientOwner() = default;
};

}  // namespace carpool::proxy
