#include "proxy/net/batch_lease.h"

#include <exception>

namespace carpool::proxy {

WriteQueue::Sent BatchLease::send() {
  CARPOOL_ASSERT(batch_ != nullptr);
  write_queue_->leased_ = false;
  const WriteQueue::Sent sent = write_queue_->send(*transport_, *batch_);
  end();
  return sent;
}

void BatchLease::abandon() {
  CARPOOL_ASSERT(batch_->empty() || std::uncaught_exceptions() != 0);
  discard();
}

}  // namespace carpool::proxy
