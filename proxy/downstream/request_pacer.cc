#include "proxy/downstream/request_pacer.h"

namespace carpool::proxy {

void RequestPacer::note_begun() {
  if (left_ != 0) --left_;
  run_soon();
}

void RequestPacer::wait(PacedClient& client) {
  if (!client.linked()) waiting_.push_back(client);
  run_soon();
}

void RequestPacer::run_soon() {
  if (!exec::Deferred::linked()) loop_.defer(*this);
}

// A client waits again only after it has begun a request, so the round terminates.
void RequestPacer::run() {
  left_ = kLoopRequests;
  while (left_ != 0 && !waiting_.empty()) waiting_.pop_front().continue_requests();
  if (!waiting_.empty()) run_soon();
}

}  // namespace carpool::proxy
