#include "proxy/tls_identity.h"

namespace carpool::proxy {

TlsIdentity::~TlsIdentity() {
  if (loader_.joinable()) loader_.join();
}

Status TlsIdentity::load() {
  finish(tls::ClientContext::make(settings_));
  if (fault_) return *fault_;
  return Done{};
}

bool TlsIdentity::ready_or_notify(exec::Loop& loop, exec::Mail& mail) {
  const std::scoped_lock lock(mutex_);
  if (context_ || fault_) return true;
  waiting_.emplace_back(&loop, &mail);
  if (!loader_.joinable()) loader_ = std::thread([this] { finish(tls::ClientContext::make(settings_)); });
  return false;
}

void TlsIdentity::forget(const exec::Mail& mail) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(waiting_, [&mail](const auto& waiting) { return waiting.second == &mail; });
}

Result<tls::ClientContext*> TlsIdentity::get() {
  const std::scoped_lock lock(mutex_);
  if (fault_) return *fault_;
  return context_.get();
}

void TlsIdentity::finish(Result<std::unique_ptr<tls::ClientContext>> made) {
  const std::scoped_lock lock(mutex_);
  if (made) {
    context_ = std::move(*made);
  } else {
    fault_ = made.take_fault();
  }
  // Posted under the mutex, so that whoever forgets a mail knows that it is not about to be posted.
  for (const auto& [loop, mail] : waiting_) loop->post(*mail);
  waiting_.clear();
}

}  // namespace carpool::proxy
