#include "proxy/upstream/h2/cross_loop_streams.h"

#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

RemoteStreams::RemoteStreams(exec::Loop& loop, Recorder& stats, const std::vector<SessionHost*>& hosts)
    : loop_(loop), stats_(stats), hosts_(hosts) {}

RemoteStream& RemoteStreams::take(exec::LoopId far) {
  while (free_.size() <= far) free_.push_back(std::make_unique<FreeList>());
  FreeList& free = *free_[far];
  if (!free.empty()) return free.pop_front();
  streams_.push_back(std::make_unique<RemoteStream>(*this, *hosts_[far]));
  return *streams_.back();
}

void RemoteStreams::recycle(RemoteStream& stream, exec::LoopId far) {
  free_[far]->push_front(stream);
}

void RemoteStreams::count_reset(const OriginContext& origin, http::H2Error error) {
  stats_.count_reset(origin.slot, http::h2_error_name(error));
}

}  // namespace carpool::proxy
