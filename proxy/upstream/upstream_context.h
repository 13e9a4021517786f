// UpstreamContext: the objects of one loop that its parts for connections to origins share. Plain references, because
// everything outlives these parts.
#pragma once

#include <cstdint>

#include "exec/loop.h"
#include "proxy/net/dial.h"

namespace carpool {
struct Fault;
namespace exec {
class Submitter;
}
}  // namespace carpool

namespace carpool::proxy {

class OriginRegistry;
class LoopStats;
class H2LoopContext;

// WarmUpListener: receives the beginning and the end of each dial of cause warm_up, on the loop of the dial.
class WarmUpListener {
 public:
  // Returns the number with which the end of this dial is reported.
  virtual std::uint64_t on_warm_dial_begun() LOOP_ONLY = 0;
  // `fault`: null if the connection is in the pool.
  virtual void on_warm_dial_ended(std::uint64_t attempt, const Fault* fault) LOOP_ONLY = 0;

 protected:
  ~WarmUpListener() = default;
};

struct UpstreamContext {
  exec::Loop& loop;
  exec::Submitter& tasks;   // runs tasks that may block
  H2LoopContext& sessions;  // the loop's context for HTTP/2 sessions
  LoopStats& stats;
  OriginRegistry& origins;
  const net::AddressPolicy& policy;
  WarmUpListener& warm_up;
  std::uint32_t inline_handshakes;  // per second, on this loop itself
  std::string_view pseudonym;       // of this proxy, for Via
  bool first;                       // true for the first loop, which does the work that is done once for all loops
};

}  // namespace carpool::proxy
