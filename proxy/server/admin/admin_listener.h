// AdminListener: one listening socket of the admin endpoint with its access rules: [admin] address, or [metrics]
// address, which serves only /metrics, /livez and /readyz.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "proxy/downstream/listener_identity.h"
#include "proxy/net/acceptor.h"
#include "proxy/net/handshake_budget.h"
#include "proxy/server/admin/access_rules.h"

namespace carpool::proxy {

class AdminListener final : private net::Acceptor::Owner {
 public:
  class Owner {
   public:
    virtual void on_accept(AdminListener& listener, Fd client) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };
  AdminListener(exec::Loop& loop, Owner& owner, bool metrics_only);
  ~AdminListener();  // removes the socket file, unless another process uses the socket

  // `inherited`: a socket that the old process bound, on which this one accepts no client before begin_accepting().
  Status open(const std::string& address,
              std::optional<net::Bound> inherited);  // the Fault names the address and the system's reason
  void begin_accepting() LOOP_ONLY;
  void stop_accepting() LOOP_ONLY { acceptor_.stop(); }  // the successor process keeps listening on the socket
  Fd copy() LOOP_ONLY { return acceptor_.copy(); }       // copy of the socket, for the successor process
  void on_left(net::SocketUser who) LOOP_ONLY { acceptor_.on_left(who); }
  // Reads the bearer token from the file at `path`, if clients of this address need one. Without a path that is a
  // Fault. After a Fault the old token stays valid. Returns true if another token was valid before.
  Result<bool> read_token(const std::string& path);
  // Sets the TLS identity for clients accepted from now on.
  void set_identity(ListenerIdentity identity) LOOP_ONLY;
  const ListenerIdentity& identity() const LOOP_ONLY { return identity_; }
  const net::Address& address() const { return acceptor_.address(); }  // with the port that the system assigned
  const admin::SharedRules& rules() const { return rules_; }

 private:
  net::Acceptor::Gate gate() override LOOP_ONLY;
  void on_client(net::Acceptor& acceptor, Fd client, const net::Address& peer) override LOOP_ONLY;
  bool trusted(int fd) const;
  exec::Loop& loop_;
  Owner& owner_;
  ListenerIdentity identity_;  // null: plain text
  admin::SharedRules rules_;
  net::HandshakeBudget handshakes_ LOOP_LOCAL;
  bool predecessor_accepts_ = false;
  net::Acceptor acceptor_;
};

}  // namespace carpool::proxy
