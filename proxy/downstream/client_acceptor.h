// ClientAcceptor: the listener's interface to a loop that receives accepted sockets.
#pragma once

#include <string>

#include "base/fd.h"
#include "exec/loop.h"

namespace carpool::proxy {

class Listener;

class ClientAcceptor {
 public:
  virtual exec::Loop& loop() = 0;
  // `peer`: address for the log.
  virtual void accept(Listener& listener, Fd socket, std::string peer) LOOP_ONLY = 0;

 protected:
  ~ClientAcceptor() = default;
};

}  // namespace carpool::proxy
