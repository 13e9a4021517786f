// ListenerChanges: how a reload changes the listeners.
#pragma once

#include <string>
#include <vector>

#include "proxy/config/config.h"
#include "proxy/downstream/listener_credentials.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/net/bind.h"

namespace carpool::proxy {

struct NewListener {
  config::Listen settings;
  net::Bound bound;
  ListenerIdentity identity;
  ListenerCredentials credentials;
};

struct ChangedListener {
  config::Listen settings;
  ListenerIdentity identity;
  ListenerCredentials credentials;
};

class Listener;

struct ListenerChanges {
  std::vector<NewListener> opening;       // already bound
  std::vector<std::string> closing;       // config::Listen::name()
  std::vector<ChangedListener> changing;  // listeners that stay
};

// AppliedListeners: the result of ListenerChanges.
struct AppliedListeners {
  std::vector<const Listener*> closed;   // their clients should be drained
  std::vector<std::string> not_open;     // names of listeners that do not accept
  std::vector<std::string> not_applied;  // the listener and the reason
};

}  // namespace carpool::proxy
