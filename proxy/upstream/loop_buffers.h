// LoopBuffers: memory of one loop that its connections lease for writing: write batches, and header blocks to encode.
#pragma once

#include "proxy/http/h2/fields.h"
#include "proxy/net/batch_lease.h"
#include "proxy/net/free_list.h"

namespace carpool::proxy {

class LoopBuffers {
 public:
  explicit LoopBuffers(exec::EventLeases& leases) : batches_(leases) {}

  BatchLease lease_batch(WriteQueue& write_queue, net::Transport& transport) {
    return {batches_, write_queue, transport};
  }
  FreeList<http::H2Fields>::Handle lend_fields() { return fields_.lend(); }

 private:
  BatchStore batches_;
  FreeList<http::H2Fields> fields_;
};

}  // namespace carpool::proxy
