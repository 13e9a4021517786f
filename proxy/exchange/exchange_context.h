// ExchangeContext: what the clients and exchanges of one loop share. Plain references: everything outlives them.
#pragma once

#include <string_view>

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
  CrossLoopStreams& remote_streams;
  ExchangePool& exchanges;
  Router& router;
  OriginRegistry& origins;
  const Dialer& dialer;
  LoopStats& stats;
  LeakLog& leaks;
  const OverloadState& overload;
  std::string_view pseudonym;                 // of this proxy in Via
  net::SocketProcesses* processes = nullptr;  // of clients on loopback; null: they are not looked for
  exec::Submitter* tasks = nullptr;           // takes those that may block; never null beside `processes`
  SpanBuffer* spans = nullptr;                // null: there is no export
  bool draining = false;  // set once, by ClientList: every client's connection ends with its next response

  // Returns true if a client's connection may serve another request.
  bool keeps_clients() const;
};

}  // namespace carpool::proxy
