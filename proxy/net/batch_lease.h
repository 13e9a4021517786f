// BatchLease: a write batch, leased from the loop by the owner of one outbox. Bytes that are collected in it can leave
// through this outbox and its transport only, so they never reach another connection. send() and discard() end the
// lease; bytes that neither of them ended are a defect, and the destructor asserts that there are none.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "exec/event_leases.h"
#include "proxy/net/free_list.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_batch.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

// The batches of one loop.
class BatchStore {
 public:
  explicit BatchStore(exec::EventLeases& leases) : leases_(leases) {}

 private:
  friend class BatchLease;
  std::unique_ptr<WriteBatch> take();
  void give_back(std::unique_ptr<WriteBatch> batch);

  exec::EventLeases& leases_;
  Spares<WriteBatch> spares_;
};

class BatchLease {
 public:
  BatchLease() = default;  // holds no batch
  // Asserts that `outbox` has no other lease. The outbox and the transport must outlive the lease.
  BatchLease(BatchStore& store, Outbox& outbox, net::Transport& transport);
  BatchLease(BatchLease&& other) noexcept;
  BatchLease& operator=(BatchLease&& other) noexcept;  // asserts that the target holds no batch
  ~BatchLease();

  explicit operator bool() const { return batch_ != nullptr; }
  std::string& text() { return batch_->text(); }
  void add(std::string_view bytes) { batch_->add(bytes); }
  bool empty() const { return batch_ == nullptr || batch_->empty(); }

  // Sends what waits in the outbox, then the batch; the outbox keeps what the socket does not take.
  [[nodiscard]] Outbox::Sent send();
  void discard();  // without a batch: no effect

 private:
  void end();

  BatchStore* store_ = nullptr;
  Outbox* outbox_ = nullptr;
  net::Transport* transport_ = nullptr;
  std::unique_ptr<WriteBatch> batch_;
};

}  // namespace carpool::proxy
