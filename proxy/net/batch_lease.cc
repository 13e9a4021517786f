#include "proxy/net/batch_lease.h"

#include <exception>
#include <utility>

#include "base/assert.h"

namespace carpool::proxy {

namespace {
// A spare batch may have a larger text only if the store keeps no other spare.
constexpr std::size_t kModest = std::size_t{32} * 1024;
}  // namespace

std::unique_ptr<WriteBatch> BatchStore::take() {
  leases_.lend();
  return spares_.take();
}

void BatchStore::give_back(std::unique_ptr<WriteBatch> batch) {
  leases_.give_back();
  batch->clear();
  if (batch->capacity() > kModest && !spares_.empty()) return;
  spares_.give_back(std::move(batch));
}

BatchLease::BatchLease(BatchStore& store, WriteQueue& write_queue, net::Transport& transport)
    : store_(&store), write_queue_(&write_queue), transport_(&transport) {
  CARPOOL_ASSERT(!write_queue.leased_);
  write_queue.leased_ = true;
  batch_ = store.take();
}

BatchLease::BatchLease(BatchLease&& other) noexcept
    : store_(other.store_),
      write_queue_(other.write_queue_),
      transport_(other.transport_),
      batch_(std::move(other.batch_)) {}

BatchLease& BatchLease::operator=(BatchLease&& other) noexcept {
  CARPOOL_ASSERT(batch_ == nullptr);
  store_ = other.store_;
  write_queue_ = other.write_queue_;
  transport_ = other.transport_;
  batch_ = std::move(other.batch_);
  return *this;
}

BatchLease::~BatchLease() {
  CARPOOL_ASSERT(empty() || std::uncaught_exceptions() != 0);
  discard();
}

WriteQueue::Sent BatchLease::send() {
  CARPOOL_ASSERT(batch_ != nullptr);
  write_queue_->leased_ = false;
  const WriteQueue::Sent sent = write_queue_->send(*transport_, *batch_);
  end();
  return sent;
}

void BatchLease::discard() {
  if (batch_ == nullptr) return;
  write_queue_->leased_ = false;
  end();
}

void BatchLease::end() {
  store_->give_back(std::move(batch_));
}

}  // namespace carpool::proxy
