// ListenerChanges: how a reload changes the listeners.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/net/bind.h"

namespace carpool::proxy {

struct NewListener {
  config::Listen settings;
  net::Bound bound;
};

struct ListenerChanges {
  std::vector<NewListener> opening;      // bound already
  std::vector<std::string> closing;      // by configured address
  std::vector<config::Listen> changing;  // others that stay
};

}  // namespace carpool::proxy
