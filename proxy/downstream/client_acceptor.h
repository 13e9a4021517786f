// ClientAcceptor: the listener's interface to a loop that takes accepted sockets.
#pragma once

#include <string>

#include "exec/loop.h"

namespace carpool::proxy {

class Listener;

class ClientAcceptor {
 public:
  virtual exec::Loop& loop() = 0;
  // Takes ownership of `fd`. `peer` is for the log.
  virtual void accept(Listener& listener, int fd, std::string peer) LOOP_ONLY = 0;

 protected:
  ~ClientAcceptor() = default;
};

}  // namespace carpool::proxy
