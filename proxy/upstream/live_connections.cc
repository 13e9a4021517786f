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
  for (const LiveConnection& one : all_) {
    if (!std::binary_search(tracked.begin(), tracked.end(), &one)) found.push_back(one.info());
  }
  return found;
}

}  // namespace carpool::proxy
