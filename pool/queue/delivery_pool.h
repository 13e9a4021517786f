// DeliveryPool: preallocated, reusable deliveries, so that a message can be sent when memory is exhausted.
#pragma once

#include <cstddef>
#include <forward_list>
#include <new>

#include "base/assert.h"
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

 private:
  std::forward_list<T> all_;
  DeliveryChain<T> free_;
  std::size_t free_size_ = 0;
};

}  // namespace carpool::pool
