// ExchangeContext: the objects of one loop that its clients and exchanges share. Plain references, because everything
// outlives them.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "exec/loop.h"

namespace carpool::exec {
class Submitter;
}

namespace carpool::proxy {

namespace net {
class SocketProcesses;
}
class Dialer;
class ExchangePool;
class LeakLog;
class LoopBuffers;
class OriginRegistry;
class OverloadState;
class LoopStats;
class CrossLoopStreams;
class Router;
class SpanBuffer;

struct ExchangeContext {
  exec::Loop& loop;
  LoopBuffers& buffers;
  CrossLoopStreams& cross_loop_streams;
  ExchangePool& exchanges;
  Router& router;
  OriginRegistry& origins;
  const Dialer& dialer;
  LoopStats& stats;
  LeakLog& leaks;
  const OverloadState& overload;
  WallClock wall_clock;                       // for Date and Retry-After
  std::string_view pseudonym;                 // of this proxy, for Via
  net::SocketProcesses* processes = nullptr;  // identifies the processes of clients on loopback; null if not needed
  exec::Submitter* tasks = nullptr;           // runs tasks that may block; never null if `processes` is not
  SpanBuffer* spans = nullptr;                // null if nothing is exported
  bool draining = false;  // set once, by ClientList: every client's connection ends after its next response

  // Returns true if a client's connection may serve another request.
  bool keeps_clients() const;
};

}  // namespace carpool::proxy
