// DeliveryQueue: the deliveries to one loop: many senders, one receiver, no allocation. The environment keeps one per
// loop and wakes the loop only when the queue was empty.
#pragma once

#include "base/first_exception.h"
#include "pool/atomic.h"
#include "pool/queue/delivery.h"

namespace carpool::pool {

class DeliveryQueue {
 public:
  // Any thread. Returns true if the queue was empty: the caller wakes the receiver.
  bool push(Delivery& delivery) {
    Delivery* head = head_.load(std::memory_order_relaxed);
    do {
      delivery.next_delivery = head;
      // release: pairs with the acquire of deliver_all(), which reads the delivery's contents. acquire: pairs with its
      // release, so that a sender that finds the queue empty may use the receiver's wake-up again.
    } while (!head_.compare_exchange_weak(head, &delivery, std::memory_order_acq_rel, std::memory_order_relaxed));
    return head == nullptr;
  }

  // Called by the receiver: delivers what is queued now, oldest first. Later arrivals wait for the next call. Throws
  // the first exception after all have arrived: a delivery that throws affects only itself.
  void deliver_all(Instant now) {
    Delivery* newest = head_.exchange(nullptr, std::memory_order_acq_rel);  // both: see push()
    Delivery* oldest = nullptr;
    while (newest != nullptr) {
      Delivery* after = newest->next_delivery;
      newest->next_delivery = oldest;
      oldest = newest;
      newest = after;
    }
    FirstException thrown;
    while (oldest != nullptr) {
      Delivery* arriving = oldest;
      oldest = arriving->next_delivery;  // arrive() may resend or destroy it
      thrown.call([arriving, now] { arriving->arrive(now); });
    }
    thrown.rethrow();
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

 private:
  Atomic<Delivery*> head_{nullptr};
};

}  // namespace carpool::pool
