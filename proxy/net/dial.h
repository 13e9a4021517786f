// Dial: one attempt to connect to an origin: DNS, happy eyeballs (RFC 8305), TCP, the CONNECT of a parent proxy, and
// TLS under one deadline. Racing addresses share the dial's slot in the pool; the losers are closed before TLS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exec/loop.h"
#include "pool/origin.h"
#include "proxy/net/address.h"
#include "proxy/net/dialed.h"

namespace carpool::exec {
class Submitter;
}
namespace carpool::proxy::dns {
class Resolver;
}
namespace carpool::proxy::tls {
class ClientContext;
}

namespace carpool::proxy::net {

class AddressPolicy;
class AddressSet;
struct ParentProxy;

struct DialPlan {
  const pool::Origin* origin = nullptr;  // must outlive the dial, as must tls and policy
  std::vector<Address> pinned;           // [[origin]].addresses instead of DNS; port 0 means the origin's port
  AddressSet* address_set = nullptr;     // nullptr: addresses are tried in the given order
  tls::ClientContext* tls = nullptr;     // nullptr: plain text
  std::vector<std::string> alpn;         // ALPN to offer instead of that of `tls`; empty: that of `tls`
  const AddressPolicy* policy = nullptr;
  const ParentProxy* parent = nullptr;    // dialed instead of the origin; must outlive the dial
  bool through_connect = false;           // requests a tunnel to the origin from `parent`
  std::string via;                        // of CONNECT
  Duration timeout{};                     // connect_timeout for DNS, TCP, CONNECT and TLS together; zero: none
  Duration dns_timeout{}, tls_timeout{};  // of these phases, within `timeout`; zero: none of their own
  // Runs the costly part of the TLS handshake (verifying the peer, signing) as a blocking task; nullptr: on the loop.
  exec::Submitter* tasks = nullptr;
};

class DialOwner {
 public:
  // Called once, never from inside start(). May destroy the Dial. Faults: dns_error, dns_timeout, connect_refused,
  // connect_timeout, unroutable, parent_refused, loop_detected, tls_certificate, tls_protocol, budget, and those of the
  // policy.
  virtual void on_dialed(Result<Dialed> result) LOOP_ONLY = 0;

 protected:
  ~DialOwner() = default;
};

class Dial {
 public:
  Dial(exec::Loop& loop, dns::Resolver& resolver, DialPlan plan, DialOwner& owner);
  ~Dial();  // cancels
  void start() LOOP_ONLY;
  // Returns true after the TCP phase: surplus dials are cancelled only before, so that no handshake work is wasted.
  bool past_tcp() const;
  // Returns the status of the parent proxy's response to CONNECT; 0: none was requested or received.
  std::uint16_t parent_status() const;
  std::string_view phase() const;  // for diagnostics: "resolving", "connecting", "in the TLS handshake", ..

 private:
  struct Impl;
  struct DialDeleter {
    void operator()(Impl* impl) const;  // if its handshake runs on another thread, it is destroyed when that returns
  };
  std::unique_ptr<Impl, DialDeleter> impl_;
};

}  // namespace carpool::proxy::net
