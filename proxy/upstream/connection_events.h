// ConnectionEvents: the current user of a connection, on its home loop.
#pragma once

#include "exec/role.h"

namespace carpool::proxy {

class ConnectionEvents {
 public:
  virtual void on_upstream_ready() LOOP_ONLY = 0;

 protected:
  ~ConnectionEvents() = default;
};

}  // namespace carpool::proxy
