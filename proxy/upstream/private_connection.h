// A connection that authenticated one client: leased to that client between its exchanges too, so that it still counts
// in the cap, and closed (cause `private`) when either side leaves. Never lent to anybody else.
#pragma once

#include "exec/loop.h"
#include "pool/destination/lease.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

struct OriginRuntime;

class PrivateConnection final : private ConnectionEvents {
 public:
  PrivateConnection(exec::Loop& loop, const OriginRuntime& origin, pool::Lease lease) LOOP_ONLY;
  ~PrivateConnection();

  const OriginRuntime& origin() const { return origin_; }
  // The lease for the client's next exchange; empty when the origin closed meanwhile, or certificates were replaced.
  pool::Lease take() LOOP_ONLY;

 private:
  void on_upstream_ready() override LOOP_ONLY;
  void end(pool::CloseCause cause = pool::CloseCause::private_) LOOP_ONLY;
  exec::Loop& loop_;
  const OriginRuntime& origin_;
  pool::Lease lease_;
};

}  // namespace carpool::proxy
