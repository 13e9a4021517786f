#include "proxy/upstream/origin/tls_identity.h"

#include <utility>

namespace carpool::proxy {

std::shared_ptr<tls::ClientContext> TlsIdentity::loaded() {
  const Held lock(mutex_);
  return context_;
}

Status TlsIdentity::load() {
  if (loaded()) return Done{};
  load_now();
  const Held lock(mutex_);
  if (fault_) return *fault_;
  return Done{};
}

bool TlsIdentity::ready_or_notify(exec::Loop& loop, exec::Submitter& tasks, exec::Mail& mail) {
  {
    const Held lock(mutex_);
    if (context_ || (fault_ && fault_->kind != FaultKind::budget)) return true;
    fault_.reset();
    waiting_.emplace_back(&loop, &mail);
    if (std::exchange(loading_, true)) return false;
  }
  static_cast<void>(tasks.submit(exec::lend(loading_task_)));  // close() of a rejected task has notified the waiters
  return false;
}

bool TlsIdentity::forget(const exec::Mail& mail) {
  const Held lock(mutex_);
  return std::erase_if(waiting_, [&mail](const auto& waiting) { return waiting.second == &mail; }) != 0;
}

Result<std::shared_ptr<tls::ClientContext>> TlsIdentity::get() {
  const Held lock(mutex_);
  if (fault_) return *fault_;
  if (!context_)
    return Fault{FaultKind::overloaded, Side::self, "too many blocking tasks (threads.max_tasks) to load certificates"};
  return context_;
}

Result<std::shared_ptr<tls::ClientContext>> TlsIdentity::renew() {
  std::shared_ptr<tls::ClientContext> current;
  {
    const Held lock(mutex_);
    stale_ = loading_;
    current = context_;
  }
  if (!current) return std::shared_ptr<tls::ClientContext>();
  Result<std::unique_ptr<tls::ClientContext>> made = tls::ClientContext::renew(*current);
  if (!made) return made.take_fault();
  return std::shared_ptr<tls::ClientContext>(std::move(*made));
}

void TlsIdentity::replace(std::shared_ptr<tls::ClientContext> context) {
  const Held lock(mutex_);
  put_in_force(std::move(context));
}

void TlsIdentity::put_in_force(std::shared_ptr<tls::ClientContext> context) {
  in_force_.store(context->fingerprint(), std::memory_order_release);
  context_ = std::move(context);
  fault_.reset();
}

void TlsIdentity::load_now() {
  while (!finish(tls::ClientContext::make(settings_))) {
  }
}

// Returns false if the files must be read again, because a reload began meanwhile.
bool TlsIdentity::finish(Result<std::unique_ptr<tls::ClientContext>> made) {
  const Held lock(mutex_);
  if (std::exchange(stale_, false)) return false;
  loading_ = false;
  if (made) {
    put_in_force(std::move(*made));
  } else {
    fault_ = made.take_fault();
  }
  notify_all();
  return true;
}

void TlsIdentity::give_up() {
  const Held lock(mutex_);
  loading_ = false;
  notify_all();
}

// Posts the mails while the mutex is held, so that no mail is posted after its forget().
void TlsIdentity::notify_all() {
  for (const auto& [loop, mail] : waiting_) loop->post(*mail);
  waiting_.clear();
}

}  // namespace carpool::proxy
