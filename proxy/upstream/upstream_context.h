// UpstreamContext: what the parts of one loop that make, watch and check connections to origins share. Plain
// references: everything outlives them.
#pragma once

#include <cstdint>

#include "exec/loop.h"
#include "proxy/net/dial.h"

namespace carpool {
struct Fault;
namespace exec {
class Submitter;
}
namespace pool {
class Destination;
}
}  // namespace carpool

namespace carpool::proxy {

class OriginRegistry;
class LoopStats;
class H2LoopContext;

// Receives the end of each dial of cause warm_up.
class WarmUpListener {
 public:
  // On the loop of the dial. `fault`: null when the connection is in the pool.
  virtual void on_warm_dial_ended(const pool::Destination& destination, const Fault* fault) LOOP_ONLY = 0;

 protected:
  ~WarmUpListener() = default;
};

struct UpstreamContext {
  exec::Loop& loop;
  exec::Submitter& tasks;   // takes those that may block
  H2LoopContext& sessions;  // what HTTP/2 sessions on this loop need of it
  LoopStats& stats;
  OriginRegistry& origins;
  const net::AddressPolicy& policy;
  WarmUpListener& warm_up;
  std::uint32_t inline_handshakes;  // a second, by this loop itself
  std::string_view pseudonym;       // of this proxy in Via
  bool first;                       // of the loops: what is done once for all of them is done here
};

}  // namespace carpool::proxy
