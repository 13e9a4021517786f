// LoopBuffers: the memory that connections of one loop lease to write: batches, and header blocks on their way into a
// session.
#pragma once

#include "proxy/batch_lease.h"
#include "proxy/http/h2_fields.h"
#include "proxy/spares.h"

namespace carpool::proxy {

class LoopBuffers {
 public:
  explicit LoopBuffers(exec::EventLeases& leases) : batches_(leases) {}

  BatchLease lease_batch(Outbox& outbox, net::Transport& transport) { return {batches_, outbox, transport}; }
  Spares<http::H2Fields>::Loan lend_fields() { return fields_.lend(); }

 private:
  BatchStore batches_;
  Spares<http::H2Fields> fields_;
};

}  // namespace carpool::proxy
