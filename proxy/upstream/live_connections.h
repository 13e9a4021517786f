// LiveConnections: every connection to an origin that entered a pool and has not been destroyed, whatever owns it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/intrusive.h"
#include "base/mutex.h"

namespace carpool::proxy {

// LiveConnection: a part of one connection, in the list from its construction to its destruction.
class LiveConnection : public ListHook<> {
 public:
  struct Info {
    std::uint64_t id = 0;
    std::string origin, local, peer;
    Instant opened{};
  };
  explicit LiveConnection(Info info);
  ~LiveConnection();
  const Info& info() const { return info_; }

 private:
  const Info info_;
};

class LiveConnections {
 public:
  // One list serves the process.
  static LiveConnections& process();

  void enter(LiveConnection& connection);
  void leave(LiveConnection& connection);
  // Returns those that are not among `tracked`, which is sorted.
  std::vector<LiveConnection::Info> others(const std::vector<const LiveConnection*>& tracked);

 private:
  Mutex mutex_;
  List<LiveConnection> all_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy
