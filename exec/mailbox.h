// Mailbox: a lock-free queue with many senders and one receiver that never allocates. Senders push onto a stack; the
// receiver takes the whole stack by one exchange and reverses it, so mail arrives in each sender's order.
//
// The stack also coalesces wake-ups: only the push that finds it empty wakes the receiver, and it stays non-empty until
// the receiver takes everything. So each mail has a wake-up after its push that the receiver has not consumed before
// taking it; there is no separate flag that could disagree with the stack.
#pragma once

#include <cstddef>

#include "exec/atomic.h"
#include "exec/callback_guard.h"
#include "exec/mail.h"

namespace carpool::exec {

class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox();  // calls never_arrives() for undelivered mail

  // Any thread. Returns true if the mailbox was empty: the caller wakes the receiver.
  [[nodiscard]] bool push(Mail& mail);

  // ---- receiver ----
  bool has_mail() const { return batch_ != nullptr || top_.load(std::memory_order_relaxed) != nullptr; }
  // Delivers at most `limit`; mail posted meanwhile waits for the next call. Returns the number delivered.
  std::size_t deliver(std::size_t limit, CallbackGuard& guard) LOOP_ONLY;
  // Without a guard: throws the first exception after all have arrived.
  std::size_t deliver(std::size_t limit) LOOP_ONLY;

 private:
  void take();
  Mail* pop();

  alignas(64) Atomic<Mail*> top_{nullptr};  // newest first; the senders' cache line
  alignas(64) Mail* batch_ = nullptr;       // oldest first; owned by the receiver
};

}  // namespace carpool::exec
