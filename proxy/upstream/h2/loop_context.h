// H2LoopContext: the parts of a loop that an HTTP/2 session to an origin and its streams use: the loop itself and
// shared buffers. Implemented by Worker, and by the simulation with a virtual clock and simulated connections.
#pragma once

#include "exec/loop.h"
#include "proxy/http/h2/types.h"
#include "proxy/http/limits.h"

namespace carpool::proxy {

struct OriginRuntime;
class CrossLoopStream;
class LoopBuffers;

class H2LoopContext {
 public:
  virtual exec::Loop& loop() = 0;

  virtual LoopBuffers& buffers() LOOP_ONLY = 0;
  // Limits of an origin's response; larger than those of clients, but bounded.
  static http::Limits response_limits() { return {128 * 1024, 512, 16 * 1024}; }

  virtual void count_reset(const OriginRuntime& origin, http::H2Error error) LOOP_ONLY = 0;
  // Called when `stream` has no message in flight, so that it may be reused for a session of loop `remote`.
  virtual void recycle(CrossLoopStream& stream, LoopId remote) LOOP_ONLY = 0;

 protected:
  ~H2LoopContext() = default;
};

}  // namespace carpool::proxy
