#include "proxy/upstream/loop_buffers.h"

namespace carpool::proxy {

LoopBuffers::LoopBuffers(exec::Loop& loop)
    : batches_(loop.leases()), loop_(loop), sweep_(exec::Timer::bind<&LoopBuffers::on_sweep_due>(loop, *this)) {
  sweep_.arm(loop.now() + kSweepInterval);
}

void LoopBuffers::on_sweep_due() {
  layouts_.sweep();
  pipes_.sweep();
  sweep_.arm(loop_.now() + kSweepInterval);
}

}  // namespace carpool::proxy
