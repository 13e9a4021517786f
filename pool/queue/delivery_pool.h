// DeliveryPool: deliveries that are used again, so that what must be sent can be without memory.
#pragma once

#include <cstddef>
#include <forward_list>
#include <new>

#include "base/assert.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

// In one place until their owner ends; as many as were ever on their way at once, or might have been. Guarded by its
// owner's mutex.
template <class T>
class DeliveryPool {
 public:
  // From now on so many can be taken without memory. False: there is none for them.
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
    CARPOOL_ASSERT(one != nullptr);  // ready() was asked
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
