#include "proxy/tls_identity.h"

#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "proxy/worker.h"

namespace carpool::proxy {

namespace {
// Of what the files hold, 0: there are none. A change between this and the loading is seen at the next look.
std::size_t fingerprint(const tls::ClientSettings& settings) {
  std::string all;
  for (const std::string& path : {settings.ca_file, settings.cert_file, settings.key_file}) {
    if (path.empty()) continue;
    std::ifstream file(path, std::ios::binary);
    all.append(path).append(1, '\0').append(std::istreambuf_iterator<char>(file), {}).append(1, '\0');
  }
  return all.empty() ? 0 : std::hash<std::string>{}(all);
}
}  // namespace

std::uint64_t TlsIdentity::likeness() const {
  std::string all = std::to_string(fingerprint(settings_));
  for (const std::string& part :
       {settings_.min_version, settings_.server_name, std::string(settings_.verify ? "1" : "0")})
    all.append(1, '\0').append(part);
  for (const std::string& protocol : settings_.alpn) all.append(1, '\0').append(protocol);
  return std::hash<std::string>{}(all);
}

std::shared_ptr<tls::ClientContext> TlsIdentity::loaded() {
  const std::scoped_lock lock(mutex_);
  return context_;
}

Status TlsIdentity::load() {
  if (loaded()) return Done{};
  loaded_ = fingerprint(settings_);
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

Result<std::shared_ptr<tls::ClientContext>> TlsIdentity::get() {
  const std::scoped_lock lock(mutex_);
  if (fault_) return *fault_;
  if (!context_) return Fault{FaultKind::budget, Side::self, "too many blocking tasks to load certificates now"};
  return context_;
}

Result<std::shared_ptr<tls::ClientContext>> TlsIdentity::renew() {
  const std::size_t now = fingerprint(settings_);
  if (now == loaded_) return std::shared_ptr<tls::ClientContext>();
  Result<std::unique_ptr<tls::ClientContext>> made = tls::ClientContext::make(settings_);
  if (!made) return made.take_fault();
  renewed_ = now;
  return std::shared_ptr<tls::ClientContext>(std::move(*made));
}

void TlsIdentity::replace(std::shared_ptr<tls::ClientContext> context) {
  const std::scoped_lock lock(mutex_);
  context_ = std::move(context);
  fault_.reset();
  loaded_ = renewed_;
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
