#include "proxy/upstream/untracked_connections.h"

#include <algorithm>

#include "pool/directory/directory.h"
#include "proxy/upstream/connection.h"

namespace carpool::proxy {

namespace {
class Tracked final : public pool::ConnectionVisitor {
 public:
  void visit(const pool::ConnectionView& view) override {
    if (view.pooled != nullptr) all.push_back(static_cast<const Connection*>(view.pooled)->live());
  }
  std::vector<const LiveConnection*> all;
};

std::vector<const LiveConnection*> tracked_by(const pool::Directory& directory, Instant now) {
  Tracked tracked;
  const auto held = directory.hold();
  for (const pool::Destination* destination : directory.all()) destination->visit(tracked, now);
  std::sort(tracked.all.begin(), tracked.all.end());
  return std::move(tracked.all);
}

bool has(const std::vector<std::uint64_t>& sorted, std::uint64_t id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}
}  // namespace

std::vector<LiveConnection::Info> UntrackedConnections::find_untracked(const pool::Directory& directory, Instant now) {
  std::vector<LiveConnection::Info> seen = LiveConnections::process().others(tracked_by(directory, now));
  std::vector<std::uint64_t> suspected, found;
  std::vector<LiveConnection::Info> fresh;
  for (LiveConnection::Info& one : seen) {
    suspected.push_back(one.id);
    if (!has(suspected_, one.id)) continue;
    found.push_back(one.id);
    if (!has(found_, one.id)) fresh.push_back(std::move(one));
  }
  std::sort(suspected.begin(), suspected.end());
  std::sort(found.begin(), found.end());
  count_.store(found.size(), std::memory_order_relaxed);
  suspected_ = std::move(suspected);
  found_ = std::move(found);
  return fresh;
}

}  // namespace carpool::proxy
