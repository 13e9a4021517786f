// LoopBuffers: memory of one loop that its connections share: write batches, a pipe, header blocks to encode, and
// layouts of field sections.
#pragma once

#include <memory>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/http/h1/field_layouts.h"
#include "proxy/http/h2/fields.h"
#include "proxy/net/batch_lease.h"
#include "proxy/net/free_list.h"

namespace carpool::proxy::net {
class PipeLease;
class PipeStore;
}  // namespace carpool::proxy::net

namespace carpool::proxy {

class LoopBuffers {
 public:
  explicit LoopBuffers(exec::Loop& loop);
  ~LoopBuffers();

  BatchLease lease_batch(WriteQueue& write_queue, net::Transport& transport) {
    return {batches_, write_queue, transport};
  }
  net::PipeStore& pipes() { return *pipes_; }
  net::PipeLease lease_pipe();
  FreeList<http::H2Fields>::Handle lend_fields() { return fields_.lend(); }
  http::FieldLayouts& layouts() { return layouts_; }

 private:
  static constexpr Duration kSweepInterval = std::chrono::seconds(10);
  static constexpr Duration kPipeSweepInterval = std::chrono::seconds(1);  // while the pipe is open
  void on_sweep_due();
  void on_pipe_sweep_due();

  BatchStore batches_;
  const std::unique_ptr<net::PipeStore> pipes_;
  FreeList<http::H2Fields> fields_;
  http::FieldLayouts layouts_;
  exec::Loop& loop_;
  exec::Timer sweep_, pipe_sweep_;
};

}  // namespace carpool::proxy
