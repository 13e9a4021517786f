// PrivateConnection: an upstream connection that is authenticated as one client (NTLM, Negotiate). It stays leased
// between that client's exchanges, so it counts in the limits and never serves another client. It is closed with the
// cause `private` when the client or the origin disconnects.
#pragma once

#include "exec/loop.h"
#include "pool/destination/lease.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/connection_events.h"

namespace carpool::proxy {

struct OriginRuntime;

class PrivateConnection final : private ConnectionEvents {
 public:
  PrivateConnection(exec::Loop& loop, const OriginRuntime& origin, pool::Lease lease) LOOP_ONLY;
  ~PrivateConnection();

  const OriginRuntime& origin() const { return origin_; }
  // Returns the lease for the client's next exchange; empty if the connection has ended or must not be used again
  // (Connection::close_cause()).
  pool::Lease take() LOOP_ONLY;

 private:
  void on_upstream_ready() override LOOP_ONLY;
  void end(pool::CloseCause cause = pool::CloseCause::private_) LOOP_ONLY;
  exec::Loop& loop_;
  const OriginRuntime& origin_;
  pool::Lease lease_;
};

}  // namespace carpool::proxy
