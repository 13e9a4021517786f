#include "proxy/upstream/loop_buffers.h"

#include "proxy/net/pipe.h"

namespace carpool::proxy {

LoopBuffers::LoopBuffers(exec::Loop& loop)
    : batches_(loop.leases()),
      pipes_(std::make_unique<net::PipeStore>()),
      loop_(loop),
      sweep_(exec::Timer::bind<&LoopBuffers::on_sweep_due>(loop, *this)),
      pipe_sweep_(exec::Timer::bind<&LoopBuffers::on_pipe_sweep_due>(loop, *this)) {
  sweep_.arm(loop.now() + kSweepInterval);
}

LoopBuffers::~LoopBuffers() = default;

void LoopBuffers::on_sweep_due() {
  layouts_.sweep();
  sweep_.arm(loop_.now() + kSweepInterval);
}

net::PipeLease LoopBuffers::lease_pipe() {
  if (!pipe_sweep_.armed()) pipe_sweep_.arm(loop_.now() + kPipeSweepInterval);
  return net::PipeLease(*pipes_);
}

void LoopBuffers::on_pipe_sweep_due() {
  if (pipes_->sweep()) pipe_sweep_.arm(loop_.now() + kPipeSweepInterval);
}

}  // namespace carpool::proxy
