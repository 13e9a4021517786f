// ReloadBarrier: notifies every loop of a new configuration and waits for all of them, so that the old configuration
// can be freed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/fan_out.h"
#include "proxy/config/config.h"
#include "proxy/server/drain.h"
#include "proxy/server/reload/listener_changes.h"
#include "proxy/server/workers.h"

namespace carpool::proxy {

class ListenerSet;
class OriginRegistry;
class TlsIdentity;

class ReloadBarrier final : public std::enable_shared_from_this<ReloadBarrier> {
 public:
  struct Parts {
    const Workers& workers;
    ListenerSet& listeners;
    OriginRegistry& origins;
    const Drain& drain;
  };
  explicit ReloadBarrier(const Parts& parts) : parts_(parts) {}

  ListenerChanges listeners;
  config::Dns dns;
  config::Otlp otlp;
  // Identities with new certificates; connections made with the previous ones are retired.
  std::vector<const TlsIdentity*> renewed;
  bool addresses_forbidden = false;  // connections lead to addresses that the new rules forbid; they are retired, too
  AppliedListeners applied;          // valid once run() has returned true

  // Must run in a blocking task. Returns false if a loop has not responded within `timeout`, or before the loops are
  // stopped; it may respond later.
  bool run(Duration timeout);

 private:
  bool stopped() const { return parts_.drain.stage() == Drain::Stage::over; }
  void begin(const std::shared_ptr<exec::Replies<Done>>& replies) LOOP_ONLY;
  const Parts parts_;
};

}  // namespace carpool::proxy
