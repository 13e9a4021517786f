// DeliveryPool: preallocated, reusable deliveries, so that a message can be sent when memory is exhausted.
#pragma once

#include <cstddef>
#include <forward_list>
#include <iterator>
#include <new>

#include "base/assert.h"
#include "pool/core/audit_report.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// Deliveries are never freed before the pool: its size is the peak number in flight or reserved by ready().
template <class T>
class DeliveryPool {
 public:
  // Ensures that `count` deliveries can be taken without allocating. Returns false if memory is exhausted.
  bool ready(std::size_t count) {
    try {
      for (; free_size_ < count; put(all_.front())) all_.emplace_front();
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }
  T& take() {
    T* one = free_.pop();
    CARPOOL_ASSERT(one != nullptr);  // the caller called ready()
    --free_size_;
    return *one;
  }
  void put(T& one) {
    free_.push(one);
    ++free_size_;
  }

  // Recounts. Returns the number of deliveries in flight.
  std::size_t audit(AuditReport& report) const {
    const std::size_t free = free_.size();
    const auto all = static_cast<std::size_t>(std::distance(all_.begin(), all_.end()));
    report.equal("the free deliveries", free_size_, free);
    report.expect(free <= all, "a free delivery is listed twice");
    return all - free;
  }
  std::size_t free() const { return free_size_; }

 private:
  std::forward_list<T> all_;
  DeliveryChain<T> free_;
  std::size_t free_size_ = 0;
};

}  // namespace carpool::pool
