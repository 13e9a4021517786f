// H2LoopContext: what an HTTP/2 session to an origin, and the streams on it, need of the loop they live on: the loop
// itself, and the buffers that everything on it leases. The real one is the worker; the simulation gives them a virtual
// clock and wires of its own.
#pragma once

#include "exec/loop.h"
#include "proxy/http/h2/types.h"
#include "proxy/http/limits.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

struct OriginRuntime;
class CrossLoopStream;

class H2LoopContext {
 public:
  virtual exec::Loop& loop() = 0;

  virtual LoopBuffers& buffers() LOOP_ONLY = 0;
  // Of an origin's answer; generous where clients are strict, yet bounded.
  static http::Limits response_limits() { return {128 * 1024, 512, 16 * 1024}; }

  virtual void count_reset(const OriginRuntime& origin, http::H2Error error) LOOP_ONLY = 0;
  // Nothing of it is under way any more: it may serve the next stream of a session of loop `far`.
  virtual void recycle(CrossLoopStream& stream, exec::LoopId far) LOOP_ONLY = 0;

 protected:
  ~H2LoopContext() = default;
};

}  // namespace carpool::proxy
