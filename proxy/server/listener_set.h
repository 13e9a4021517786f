// ListenerSet: the open listeners, and the listeners that a reload closed, whose clients may still be connected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proxy/downstream/listener.h"
#include "proxy/server/reload/listener_changes.h"

namespace carpool::proxy {

class ListenerSet {
 public:
  // Sets the parts that every listener is built with. Must be called first.
  void set_parts(Listener::Parts parts) { parts_ = std::move(parts); }

  // Binds a listener, or adopts `inherited`, and starts it. The Fault names the address and the system's reason.
  Status open(const config::Listen& settings, std::optional<net::Bound> inherited) LOOP_ONLY;
  // Applies a reload.
  AppliedListeners apply(ListenerChanges& changes) LOOP_ONLY;
  void close_all() LOOP_ONLY;  // accepts the clients that wait, and then no more
  void end_all() LOOP_ONLY;    // accepts none any more: no loop runs
  void leave_all() LOOP_ONLY;  // like end_all(), but the successor process keeps listening on the sockets
  void on_left(net::SocketUser who) LOOP_ONLY;  // `who` does not use the sockets any more
  void clear();                                 // no client may be left
  const std::vector<std::unique_ptr<Listener>>& open_ones() const { return open_; }

 private:
  std::unique_ptr<Listener> reopened(const config::Listen& settings) LOOP_ONLY;
  void open(NewListener& change, AppliedListeners& applied) LOOP_ONLY;

  Listener::Parts parts_;
  std::vector<std::unique_ptr<Listener>> open_;
  std::vector<std::unique_ptr<Listener>> closed_;  // reopened by a reload that names their address again
};

}  // namespace carpool::proxy
