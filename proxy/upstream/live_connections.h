// LiveConnections: every connection to an origin that entered a pool and has not been destroyed, regardless of its
// owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/intrusive.h"
#include "base/mutex.h"

namespace carpool::proxy {

// LiveConnection: the part of a connection that is in the list, from its construction to its destruction.
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
  // Returns the list of the process.
  static LiveConnections& process();

  void enter(LiveConnection& connection);
  void leave(LiveConnection& connection);
  // Returns the connections that are not among `tracked`, which must be sorted.
  std::vector<LiveConnection::Info> others(const std::vector<const LiveConnection*>& tracked);

 private:
  Mutex mutex_;
  List<LiveConnection> all_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy
