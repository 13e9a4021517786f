// ListenerSet: the listeners that are open, and those that a reload closed, whose clients may live on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proxy/downstream/listener.h"
#include "proxy/server/reload/listener_changes.h"

namespace carpool::proxy {

class ListenerSet {
 public:
  // What every listener is made with; before anything else.
  void set_parts(Listener::Parts parts) { parts_ = std::move(parts); }

  // Binds a listener, or adopts `inherited`, and starts it. The Fault names the address and the system's reason.
  Status open(const config::Listen& settings, std::optional<net::Bound> inherited) LOOP_ONLY;
  // Returns those that closed: their clients should end.
  std::vector<const Listener*> apply(ListenerChanges& changes) LOOP_ONLY;
  void close_all() LOOP_ONLY;  // no new clients
  void leave_all() LOOP_ONLY;  // the same, but another process goes on listening on the sockets
  void clear();                // no client is left
  const std::vector<std::unique_ptr<Listener>>& open_ones() const { return open_; }

 private:
  std::unique_ptr<Listener> reopened(const config::Listen& settings) LOOP_ONLY;

  Listener::Parts parts_;
  std::vector<std::unique_ptr<Listener>> open_;
  std::vector<std::unique_ptr<Listener>> closed_;  // opened again by a reload that names their address
};

}  // namespace carpool::proxy
