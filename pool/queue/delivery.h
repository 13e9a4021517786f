// Delivery: a message to another loop: a grant (embedded in its entry, at most one in flight, so nothing is allocated)
// or a rejection. The environment carries it and calls arrive() there; its ticket decides on arrival whether the
// borrower still waits for it.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace carpool::pool {

class Delivery {
 public:
  // Called on the destination loop at top level, never from inside a call into the pool. May send the delivery again or
  // destroy it.
  virtual void arrive(Instant now) = 0;

  Delivery* next_delivery = nullptr;  // used by the environment while the delivery is in flight

 protected:
  Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery() = default;
};

// A FIFO of deliveries that have not been sent; uses next_delivery, which the environment does not use yet.
template <class T>
class DeliveryChain {
 public:
  void push(T& delivery) {
    delivery.next_delivery = nullptr;
    (first_ == nullptr ? first_ : last_->next_delivery) = &delivery;
    last_ = &delivery;
  }
  T* pop() {
    Delivery* delivery = first_;
    if (delivery != nullptr) first_ = delivery->next_delivery;
    return static_cast<T*>(delivery);
  }
  std::size_t size() const {
    std::size_t count = 0;
    for (const Delivery* at = first_; at != nullptr; at = at->next_delivery) ++count;
    return count;
  }

 private:
  Delivery* first_ = nullptr;
  Delivery* last_ = nullptr;
};

}  // namespace carpool::pool
