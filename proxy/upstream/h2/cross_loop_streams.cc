#include "proxy/upstream/h2/cross_loop_streams.h"

#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_runtime.h"

namespace carpool::proxy {

CrossLoopStreams::CrossLoopStreams(exec::Loop& loop, LoopStats& stats, const std::vector<H2LoopContext*>& hosts)
    : loop_(loop), stats_(stats), hosts_(hosts) {}

CrossLoopStream& CrossLoopStreams::acquire(LoopId remote) {
  while (free_.size() <= remote) free_.push_back(std::make_unique<FreeList>());
  FreeList& free = *free_[remote];
  if (!free.empty()) return free.pop_front();
  streams_.push_back(std::make_unique<CrossLoopStream>(*this, *hosts_[remote]));
  return *streams_.back();
}

void CrossLoopStreams::recycle(CrossLoopStream& stream, LoopId remote) {
  free_[remote]->push_front(stream);
}

void CrossLoopStreams::count_reset(const OriginRuntime& origin, http::H2Error error) {
  stats_.count_reset(origin.slot, http::h2_error_name(error));
}

}  // namespace carpool::proxy
