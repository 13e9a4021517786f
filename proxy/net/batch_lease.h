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
  struct Leased {
    WriteBatch batch;
    BatchStore* store = nullptr;
    WriteQueue* write_queue = nullptr;
    net::Transport* transport = nullptr;
  };
  std::unique_ptr<Leased> take() {
    std::unique_ptr<Leased> one = spares_.take();  // may throw
    leases_.lend();
    return one;
  }
  void give_back(std::unique_ptr<Leased> one) {
    CARPOOL_ASSERT(one->batch.empty());
    leases_.give_back();
    if (one->batch.capacity() <= kKeptCapacity || spares_.empty()) spares_.give_back(std::move(one));
  }

  exec::EventLeases& leases_;
  FreeList<Leased> spares_;
};

class BatchLease {
 public:
  BatchLease() = default;  // holds no batch
  // Asserts that `write_queue` has no other lease. The write queue and the transport must outlive the lease.
  BatchLease(BatchStore& store, WriteQueue& write_queue, net::Transport& transport) {
    CARPOOL_ASSERT(!write_queue.leased_);
    leased_ = store.take();
    write_queue.leased_ = true;
    leased_->store = &store;
    leased_->write_queue = &write_queue;
    leased_->transport = &transport;
  }
  BatchLease(BatchLease&& other) noexcept = default;
  BatchLease& operator=(BatchLease&& other) noexcept {  // asserts that the target holds no batch
    CARPOOL_ASSERT(leased_ == nullptr);
    leased_ = std::move(other.leased_);
    return *this;
  }
  ~BatchLease() {
    if (leased_ != nullptr) abandon();
  }

  explicit operator bool() const { return leased_ != nullptr; }
  std::string& text() { return leased_->batch.text(); }
  void add(std::string_view bytes) { leased_->batch.add(bytes); }
  bool empty() const { return leased_ == nullptr || leased_->batch.empty(); }

  // Sends the write queue's data, then the batch; the write queue keeps what the socket does not accept.
  [[nodiscard]] WriteQueue::Sent send();
  void discard() {  // no effect without a batch
    if (leased_ == nullptr) return;
    leased_->batch.clear();
    end();
  }

 private:
  void abandon();
  void end() {
    leased_->write_queue->leased_ = false;
    BatchStore& store = *leased_->store;
    store.give_back(std::move(leased_));
  }

  std::unique_ptr<BatchStore::Leased> leased_;
};

}  // namespace carpool::proxy
