#include "proxy/net/batch_lease.h"

#include <exception>

namespace carpool::proxy {

WriteQueue::Sent BatchLease::send() {
  CARPOOL_ASSERT(leased_ != nullptr);
  WriteQueue& write_queue = *leased_->write_queue;
  write_queue.leased_ = false;
  const WriteQueue::Sent sent = write_queue.send(*leased_->transport, leased_->batch);
  end();
  return sent;
}

void BatchLease::abandon() {
  CARPOOL_ASSERT(leased_->batch.empty() || std::uncaught_exceptions() != 0);
  discard();
}

}  // namespace carpool::proxy
