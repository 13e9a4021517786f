// Delivery: something on its way to another loop: a grant (embedded in its entry, one in flight each, so nothing is
// allocated) or a refusal. The house carries it and calls arrive() there; whatever became of the borrower meanwhile is
// found out on arrival, by its ticket.
#pragma once

#include "base/clock.h"

namespace carpool::pool {

class Delivery {
 public:
  // On the loop it was sent to, at top level: never from inside a call into the pool. It may be sent again, or be
  // destroyed, from inside.
  virtual void arrive(Instant now) = 0;

  Delivery* next_delivery = nullptr;  // the house's, while in the mail

 protected:
  Delivery() = default;
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  ~Delivery() = default;
};

// In the order they were added; linked as the mail links them, which they are not in yet.
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

 private:
  Delivery* first_ = nullptr;
  Delivery* last_ = nullptr;
};

}  // namespace carpool::pool
