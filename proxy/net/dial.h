// Dial: one attempt to make a Transport for an origin: DNS, happy eyeballs (RFC 8305), TCP, TLS; one deadline over all.
// Racing addresses share the dial's slot in the pool; the loser is closed before TLS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exec/loop.h"
#include "pool/origin.h"
#include "proxy/net/address.h"
#include "proxy/net/dns/resolver.h"
#include "proxy/net/transport.h"

namespace carpool::exec {
class Submitter;
}
namespace carpool::proxy::tls {
class ClientContext;
}

namespace carpool::proxy::net {

class AddressSet;

// Which addresses may never be dialed: own listeners, admin, metadata, egress rules. Asked with the address that is
// really dialed (CONTRACT "Never"). net/egress_policy.h is the one of the house.
class AddressPolicy {
 public:
  // A Fault (egress_denied, loop_detected) or success.
  virtual Status may_dial(const pool::Origin& origin, const Address& address) const = 0;

 protected:
  ~AddressPolicy() = default;
};

struct DialPlan {
  const pool::Origin* origin = nullptr;  // outlives the dial, as do tls and policy
  std::vector<Address> pinned;           // [[origin]].addresses instead of DNS; port 0 means the origin's
  AddressSet* book = nullptr;            // null: addresses are tried as they come
  tls::ClientContext* tls = nullptr;     // null: plain text
  std::vector<std::string> alpn;         // what to offer instead of what `tls` says; empty: that
  const AddressPolicy* policy = nullptr;
  Duration timeout{};  // connect_timeout: DNS + TCP + TLS; zero: none
  // Where the costly part of the TLS handshake (checking the peer, signing) is a blocking task; null: on the loop.
  exec::Submitter* tasks = nullptr;
};

struct Dialed {
  std::unique_ptr<Transport> transport;  // not watched by the loop: the owner watches it
  Address peer, local;
  Duration dns{}, tcp{}, tls{};  // where the time went
  Duration tls_cpu{};            // of it, what the handshake worked
};

class DialOwner {
 public:
  // Once, never from inside start(). The Dial may be destroyed from inside. Faults: dns_error, dns_timeout,
  // connect_refused, connect_timeout, unroutable, tls_certificate, tls_protocol, budget, and the policy's.
  virtual void on_dialed(Result<Dialed> result) LOOP_ONLY = 0;

 protected:
  ~DialOwner() = default;
};

class Dial {
 public:
  Dial(exec::Loop& loop, dns::Resolver& resolver, DialPlan plan, DialOwner& owner);
  ~Dial();  // cancels
  void start() LOOP_ONLY;
  // Past TCP: what was spent on the handshake should not be thrown away (surplus dials are cancelled only before).
  bool past_tcp() const;
  std::string_view phase() const;  // for a person: "resolving", "connecting", "in the TLS handshake"

 private:
  struct Impl;
  struct DialDeleter {
    void operator()(Impl* impl) const;  // one whose handshake is on another thread ends when that has come home
  };
  std::unique_ptr<Impl, DialDeleter> impl_;
};

}  // namespace carpool::proxy::net
