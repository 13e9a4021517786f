// AdminListener: one listening socket of the admin endpoint, and the rules for whoever comes through it: [admin]
// address, or [metrics] address with nothing but /metrics, /livez and /readyz behind it.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/net/address.h"
#include "proxy/net/bind.h"
#include "proxy/server/admin/access_rules.h"

namespace carpool::proxy {

class AdminListener final : private exec::Watcher {
 public:
  class Owner {
   public:
    virtual void on_accept(AdminListener& listener, Fd client) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };
  AdminListener(exec::Loop& loop, Owner& owner, bool metrics_only);
  ~AdminListener();  // a socket file goes with it

  // `inherited`: bound already, by the process before.
  Status open(const std::string& address,
              std::optional<net::Bound> inherited);  // the Fault names the address and the system's reason
  void stop_accepting() LOOP_ONLY;                   // nobody new; another process goes on listening on the socket
  Fd copy() const;                                   // of the socket, for it
  // The bearer token out of this file, read anew; empty: none is demanded. The old one stays after a Fault.
  Status read_token(const std::string& path);
  const net::Address& address() const { return address_; }  // the real port
  const admin::Rules& rules() const { return rules_; }

 private:
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void on_retry();
  void accept_some() LOOP_ONLY;
  bool trusted(int fd) const;
  struct More final : exec::Deferred {
    explicit More(AdminListener& listener) : listener_(listener) {}
    void run() override LOOP_ONLY { listener_.accept_some(); }
    AdminListener& listener_;
  };
  exec::Loop& loop_;
  Owner& owner_;
  admin::Rules rules_;
  Fd fd_;
  exec::WatchKey key_;
  net::Address address_;
  More more_{*this};
  exec::Timer retry_;  // after the system had no descriptor for a client: no event comes for those who wait
};

}  // namespace carpool::proxy
