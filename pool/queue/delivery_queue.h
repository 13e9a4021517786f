// The mailbag of one loop: many senders, one receiver, nothing allocated. A house keeps one per loop and wakes the loop
// only when the bag was empty.
#pragma once

#include <atomic>

#include "pool/queue/delivery.h"

namespace carpool::pool {

class DeliveryQueue {
 public:
  // Any thread. True: it was empty, wake the receiver.
  bool push(Delivery& delivery) {
    Delivery* head = head_.load(std::memory_order_relaxed);
    do {
      delivery.next_delivery = head;
      // release: pairs with the acquire of deliver_all(), which reads what was written into the delivery. acquire:
      // pairs with its release, so that whoever finds the bag empty may use the receiver's wake-up again.
    } while (!head_.compare_exchange_weak(head, &delivery, std::memory_order_acq_rel, std::memory_order_relaxed));
    return head == nullptr;
  }

  // The receiver: everything that is in the bag now, oldest first. What arrives meanwhile waits for the next call.
  void deliver_all(Instant now) {
    Delivery* newest = head_.exchange(nullptr, std::memory_order_acq_rel);  // both: see push()
    Delivery* oldest = nullptr;
    while (newest != nullptr) {
      Delivery* after = newest->next_delivery;
      newest->next_delivery = oldest;
      oldest = newest;
      newest = after;
    }
    while (oldest != nullptr) {
      Delivery* next = oldest->next_delivery;  // arrive() may send it on, or end it
      oldest->arrive(now);
      oldest = next;
    }
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

 private:
  std::atomic<Delivery*> head_{nullptr};
};

}  // namespace carpool::pool
