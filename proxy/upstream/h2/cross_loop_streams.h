// CrossLoopStreams: hosts the HTTP/2 sessions of one loop, and owns its exchanges' streams on sessions of other loops.
// Streams are recycled, so that nothing is allocated once the peak number exists.
#pragma once

#include <memory>
#include <vector>

#include "base/intrusive.h"
#include "proxy/upstream/h2/cross_loop_stream.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

class LoopStats;

class CrossLoopStreams final : public H2LoopContext {
 public:
  // `hosts`: the contexts of all loops, by loop number. Must be complete before the first stream is acquired.
  CrossLoopStreams(exec::Loop& loop, LoopStats& stats, const std::vector<H2LoopContext*>& hosts);

  // Returns a stream on a session of loop `remote`, for an exchange of this loop.
  CrossLoopStream& acquire(LoopId remote) LOOP_ONLY;

  exec::Loop& loop() override { return loop_; }
  LoopBuffers& buffers() override LOOP_ONLY { return buffers_; }
  void count_reset(const OriginRuntime& origin, http::H2Error error) override LOOP_ONLY;
  void recycle(CrossLoopStream& stream, LoopId remote) override LOOP_ONLY;

 private:
  using FreeList = List<CrossLoopStream, CrossLoopStreamTag>;

  exec::Loop& loop_;
  LoopStats& stats_;
  const std::vector<H2LoopContext*>& hosts_;
  LoopBuffers buffers_ LOOP_LOCAL{loop_};
  std::vector<std::unique_ptr<CrossLoopStream>> streams_ LOOP_LOCAL;  // all streams
  std::vector<std::unique_ptr<FreeList>> free_ LOOP_LOCAL;            // by the session's loop
};

}  // namespace carpool::proxy
