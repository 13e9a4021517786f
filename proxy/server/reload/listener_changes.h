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
  std::vector<NewListener> opening;      // already bound
  std::vector<std::string> closing;      // configured addresses
  std::vector<config::Listen> changing;  // listeners that stay, with other settings
};

}  // namespace carpool::proxy
