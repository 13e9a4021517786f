// AdminListener: one listening socket of the admin endpoint with its access rules: [admin] address, or [metrics]
// address, which serves only /metrics, /livez and /readyz.
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
  ~AdminListener();  // removes the socket file

  // `inherited`: a socket bound by the old process.
  Status open(const std::string& address,
              std::optional<net::Bound> inherited);  // the Fault names the address and the system's reason
  void stop_accepting() LOOP_ONLY;                   // the successor process goes on listening on the socket
  Fd copy() const;                                   // of the socket, for the successor process
  // Reads the bearer token from this file again; empty: none is required. After a Fault the old token stays valid.
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
  exec::Timer retry_;  // runs after the system had no descriptor for a client: no event announces waiting clients again
};

}  // namespace carpool::proxy
