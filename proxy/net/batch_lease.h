// BatchLease: a write batch, leased from the loop by the owner of one write queue. The bytes in it can be sent only
// through this write queue and its transport, so they never reach another connection. send() and discard() end the
// lease; the destructor asserts that no bytes are left.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "exec/event_leases.h"
#include "proxy/net/free_list.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_batch.h"
#include "proxy/net/write_queue.h"

namespace carpool::proxy {

// BatchStore: the batches of one loop.
class BatchStore {
 public:
  explicit BatchStore(exec::EventLeases& leases) : leases_(leases) {}

 private:
  friend class BatchLease;
  // A spare batch may have a larger text only if the store keeps no other spare.
  static constexpr std::size_t kKeptCapacity = std::size_t{32} * 1024;
  std::unique_ptr<WriteBatch> take() {
    leases_.lend();
    return spares_.take();
  }
  void give_back(std::unique_ptr<WriteBatch> batch) {
    CARPOOL_ASSERT(batch->empty());
    leases_.give_back();
    if (batch->capacity() <= kKeptCapacity || spares_.empty()) spares_.give_back(std::move(batch));
  }

  exec::EventLeases& leases_;
  FreeList<WriteBatch> spares_;
};

class BatchLease {
 public:
  BatchLease() = default;  // holds no batch
  // Asserts that `write_queue` has no other lease. The write queue and the transport must outlive the lease.
  BatchLease(BatchStore& store, WriteQueue& write_queue, net::Transport& transport)
      : store_(&store), write_queue_(&write_queue), transport_(&transport) {
    CARPOOL_ASSERT(!write_queue.leased_);
    write_queue.leased_ = true;
    batch_ = store.take();
  }
  BatchLease(BatchLease&& other) noexcept = default;
  BatchLease& operator=(BatchLease&& other) noexcept {  // asserts that the target holds no batch
    CARPOOL_ASSERT(batch_ == nullptr);
    store_ = other.store_;
    write_queue_ = other.write_queue_;
    transport_ = other.transport_;
    batch_ = std::move(other.batch_);
    return *this;
  }
  ~BatchLease() {
    if (batch_ != nullptr) abandon();
  }

  explicit operator bool() const { return batch_ != nullptr; }
  std::string& text() { return batch_->text(); }
  void add(std::string_view bytes) { batch_->add(bytes); }
  bool empty() const { return batch_ == nullptr || batch_->empty(); }

  // Sends the write queue's data, then the batch; the write queue keeps what the socket does not accept.
  [[nodiscard]] WriteQueue::Sent send();
  void discard() {  // no effect without a batch
    if (batch_ == nullptr) return;
    batch_->clear();
    end();
  }

 private:
  void abandon();
  void end() {
    write_queue_->leased_ = false;
    store_->give_back(std::move(batch_));
  }

  BatchStore* store_ = nullptr;
  WriteQueue* write_queue_ = nullptr;
  net::Transport* transport_ = nullptr;
  std::unique_ptr<WriteBatch> batch_;
};

}  // namespace carpool::proxy
