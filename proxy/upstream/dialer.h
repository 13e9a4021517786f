// Dialer: dials the connections that destinations request from this loop. A dial belongs to its destination, not to the
// request that caused it: the first waiter gets the connection.
#pragma once

#include <memory>
#include <string_view>

#include "base/intrusive.h"
#include "exec/loop.h"
#include "pool/destination/destination.h"
#include "proxy/net/handshake_budget.h"
#include "proxy/upstream/origin/origin_runtime.h"
#include "proxy/upstream/pending_dial_owner.h"

namespace carpool::proxy::dns {
class Resolver;
}

namespace carpool::proxy {

struct UpstreamContext;

class Dialer final : public PendingDialOwner {
 public:
  explicit Dialer(const UpstreamContext& context, dns::Resolver& resolver);
  ~Dialer();

  void dial(pool::Destination& destination, OriginRuntime& origin, pool::Reservation reservation) LOOP_ONLY;
  // Cancels a dial that is no longer needed, unless its TCP connection is established.
  void cancel_dial(pool::Destination& destination, std::uint32_t index, std::uint32_t generation) LOOP_ONLY;
  // Returns the phase of this loop's oldest dial for `origin` ("resolving", "dialing", "in TLS"), or an empty text if
  // there is none.
  std::string_view phase_of(const OriginRuntime& origin) const LOOP_ONLY;
  void stop_waiting() LOOP_ONLY;  // stops waiting for TLS contexts; messages that are already posted may still arrive
  void cancel_all() LOOP_ONLY;    // when the loop ends: each dial fails with `draining`

 private:
  void finished(PendingDial& attempt) override LOOP_ONLY;

  const UpstreamContext& context_;
  dns::Resolver& resolver_;
  net::HandshakeBudget handshakes_;
  struct Index;                                     // of attempts_
  mutable List<PendingDial, AttemptTag> attempts_;  // owned
  const std::unique_ptr<Index> index_;
};

}  // namespace carpool::proxy
