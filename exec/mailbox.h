// Mailbox: many senders, one receiver, no lock and no allocation. Senders push on a stack, the receiver takes the whole
// stack with one exchange and turns it round: mail arrives in the order each sender posted it.
//
// The wake-up is coalesced by the stack itself: only the push that finds it empty has to wake the receiver, and the
// receiver finds it non-empty until it takes everything. So every mail has a wake-up that comes after its push and that
// the receiver has not consumed before taking it; there is no flag that could be out of step with the stack.
#pragma once

#include <atomic>
#include <cstddef>

#include "exec/callback_guard.h"
#include "exec/mail.h"

namespace carpool::exec {

class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox();  // what never arrived is told so, and is its owner's again

  // Any thread. True: the box was empty, wake the receiver.
  [[nodiscard]] bool push(Mail& mail);

  // The receiver's side.
  bool has_mail() const { return batch_ != nullptr || top_.load(std::memory_order_relaxed) != nullptr; }
  // Delivers at most `limit`; what is posted meanwhile waits for the next call. Returns how many arrived.
  std::size_t deliver(std::size_t limit, CallbackGuard& guard) LOOP_ONLY;
  // For those who have no guard: throws the first exception when all have arrived.
  std::size_t deliver(std::size_t limit) LOOP_ONLY;

 private:
  void take();
  Mail* pop();

  alignas(64) std::atomic<Mail*> top_{nullptr};  // newest first; senders' cache line
  alignas(64) Mail* batch_ = nullptr;            // oldest first; the receiver's own
};

}  // namespace carpool::exec
