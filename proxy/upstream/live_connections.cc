#include "proxy/upstream/live_connections.h"

#include <algorithm>
#include <utility>

namespace carpool::proxy {

LiveConnection::LiveConnection(Info info) : info_(std::move(info)) {
  LiveConnections::process().enter(*this);
}

LiveConnection::~LiveConnection() {
  LiveConnections::process().leave(*this);
}

LiveConnections& LiveConnections::process() {
  static LiveConnections all;
  return all;
}

void LiveConnections::enter(LiveConnection& connection) {
  const Held lock(mutex_);
  all_.push_back(connection);
}

void LiveConnections::leave(LiveConnection& connection) {
  const Held lock(mutex_);
  connection.unlink();
}

std::vector<LiveConnection::Info> LiveConnections::others(const std::vector<const LiveConnection*>& tracked) {
  const Held lock(mutex_);
  std::vector<LiveConnection::Info> found;
  for (LiveConnection* one = all_.next(nullptr); one != nullptr; one = all_.next(one)) {
    const LiveConnection* const same = one;
    if (!std::binary_search(tracked.begin(), tracked.end(), same)) found.push_back(one->info());
  }
  return found;
}

}  // namespace carpool::proxy
