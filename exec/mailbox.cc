#include "exec/mailbox.h"

namespace carpool::exec {

Mailbox::~Mailbox() {
  do {
    while (Mail* mail = pop()) mail->never_arrives();
    take();
  } while (batch_ != nullptr);
}

bool Mailbox::push(Mail& mail) {
  CARPOOL_ASSERT(mail.next_mail_ == nullptr);
  Mail* top = top_.load(std::memory_order_relaxed);
  do {
    mail.next_mail_ = top == nullptr ? &mail : top;
    // release pairs with the acquire in take(): the sender's writes, the link included, are visible with the mail.
    // Pushes of other senders in between are read-modify-writes, so they continue this release sequence.
  } while (!top_.compare_exchange_weak(top, &mail, std::memory_order_release, std::memory_order_relaxed));
  return top == nullptr;
}

void Mailbox::take() {
  // acquire pairs with the release in push(). One read-modify-write orders this against each push: an earlier push is
  // taken here, a later one finds the mailbox empty and wakes the receiver again.
  Mail* mail = top_.exchange(nullptr, std::memory_order_acquire);
  while (mail != nullptr) {
    Mail* older = mail->next_mail_ == mail ? nullptr : mail->next_mail_;
    mail->next_mail_ = batch_ == nullptr ? mail : batch_;
    batch_ = mail;
    mail = older;
  }
}

Mail* Mailbox::pop() {
  Mail* mail = batch_;
  if (mail == nullptr) return nullptr;
  batch_ = mail->next_mail_ == mail ? nullptr : mail->next_mail_;
  mail->next_mail_ = nullptr;
  return mail;
}

std::size_t Mailbox::deliver(std::size_t limit, CallbackGuard& guard) {
  if (batch_ == nullptr) {
    if (top_.load(std::memory_order_relaxed) == nullptr) return 0;
    take();
  }
  std::size_t delivered = 0;
  while (delivered < limit) {
    Mail* mail = pop();
    if (mail == nullptr) break;
    ++delivered;
    guard.call([mail]() LOOP_ONLY { mail->arrive(); });
  }
  return delivered;
}

std::size_t Mailbox::deliver(std::size_t limit) {
  CallbackGuard guard;
  const std::size_t delivered = deliver(limit, guard);
  guard.rethrow();
  return delivered;
}

}  // namespace carpool::exec
