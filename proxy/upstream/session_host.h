// SessionHost: what an HTTP/2 session to an origin, and the streams on it, need of the loop they live on: the loop
// itself, and scratch that everything on it shares. The real one is the worker; the simulation gives them a virtual
// clock and wires of its own.
#pragma once

#include <sys/uio.h>

#include <string>
#include <vector>

#include "exec/loop.h"
#include "proxy/gather.h"
#include "proxy/http/h2_fields.h"
#include "proxy/http/h2_types.h"

namespace carpool::proxy {

struct OriginContext;
class RemoteStream;

class SessionHost {
 public:
  virtual exec::Loop& loop() = 0;

  // Scratch of the turn, empty between events.
  virtual Gather& to_upstream() LOOP_ONLY = 0;
  virtual std::vector<iovec>& pieces() LOOP_ONLY = 0;
  virtual http::H2Fields& h2_fields() LOOP_ONLY = 0;  // a head on its way into a session
  virtual std::string& h2_frames() LOOP_ONLY = 0;     // frames on their way into a socket

  virtual void count_reset(const OriginContext& origin, http::H2Error error) LOOP_ONLY = 0;
  // Nothing of it is under way any more: it may serve the next stream of a session of loop `far`.
  virtual void recycle(RemoteStream& stream, exec::LoopId far) LOOP_ONLY = 0;

 protected:
  ~SessionHost() = default;
};

}  // namespace carpool::proxy
