// PrivateConnection: an upstream connection that is authenticated as one client (NTLM, Negotiate). It stays leased
// between that client's exchanges, so it counts in the limits and never serves another client. It is closed with the
// cause `private` when the client or the origin disconnects. If the origin disconnects, the client's connection is
// closed too: its authentication is lost, and the client has no other way to notice.
#pragma once

#include "exec/bound.h"
#include "exec/loop.h"
#include "pool/destination/lease.h"
#include "proxy/upstream/connection_events.h"

namespace carpool::proxy {

class PrivateConnection final : private ConnectionEvents {
 public:
  // `on_end` is called when the origin has closed the connection. The constructor may call it.
  PrivateConnection(exec::Loop& loop, exec::Bound on_end, const pool::Destination& destination,
                    pool::Lease lease) LOOP_ONLY;
  ~PrivateConnection();

  // For comparison only: the pointer may be invalid once the connection has ended.
  const pool::Destination* destination() const { return destination_; }
  // Returns the lease for the client's next exchange, or an empty one if the connection has ended or must not be reused
  // (Connection::close_cause()).
  pool::Lease take() LOOP_ONLY;
  bool ended_by_origin() const { return ended_by_origin_; }

 private:
  void on_upstream_ready() override LOOP_ONLY;
  void end(pool::CloseCause cause = pool::CloseCause::private_) LOOP_ONLY;
  bool check_open() LOOP_ONLY;
  exec::Loop& loop_;
  const exec::Bound on_end_;
  const pool::Destination* const destination_;
  pool::Lease lease_;
  bool ended_by_origin_ = false;
};

}  // namespace carpool::proxy
