#include "proxy/tls_identity.h"

#include "proxy/worker.h"

namespace carpool::proxy {

Status TlsIdentity::load() {
  finish(tls::ClientContext::make(settings_));
  if (fault_) return *fault_;
  return Done{};
}

bool TlsIdentity::ready_or_notify(Worker& worker, exec::Mail& mail) {
  {
    const std::scoped_lock lock(mutex_);
    if (context_ || fault_) return true;
    waiting_.emplace_back(&worker.loop(), &mail);
    if (std::exchange(loading_, true)) return false;
  }
  worker.submit(exec::lend(loading_task_));  // refused: its close() has told those who wait
  return false;
}

void TlsIdentity::forget(const exec::Mail& mail) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(waiting_, [&mail](const auto& waiting) { return waiting.second == &mail; });
}

Result<tls::ClientContext*> TlsIdentity::get() {
  const std::scoped_lock lock(mutex_);
  if (fault_) return *fault_;
  if (!context_) return Fault{FaultKind::budget, Side::self, "too many blocking tasks to load certificates now"};
  return context_.get();
}

void TlsIdentity::finish(Result<std::unique_ptr<tls::ClientContext>> made) {
  const std::scoped_lock lock(mutex_);
  if (made) {
    context_ = std::move(*made);
  } else {
    fault_ = made.take_fault();
  }
  tell_all();
}

void TlsIdentity::give_up() {
  const std::scoped_lock lock(mutex_);
  loading_ = false;
  tell_all();
}

// Posted under the mutex, so that whoever forgets a mail knows that it is not about to be posted.
void TlsIdentity::tell_all() {
  for (const auto& [loop, mail] : waiting_) loop->post(*mail);
  waiting_.clear();
}

}  // namespace carpool::proxy
