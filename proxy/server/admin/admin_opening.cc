#include "proxy/server/admin/admin_opening.h"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "proxy/http/h2/types.h"
#include "proxy/net/plain_transport.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

AdminOpening::AdminOpening(exec::Loop& loop, Owner& owner, std::unique_ptr<net::Transport> transport)
    : loop_(loop),
      owner_(owner),
      transport_(std::move(transport)),
      timer_(exec::Timer::bind<&AdminOpening::on_deadline>(loop, *this)),
      deadline_(loop.now() + kAdminTimeout) {}

AdminOpening::AdminOpening(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> transport)
    : AdminOpening(loop, owner, std::unique_ptr<net::Transport>()) {
  handshake_ = transport.get();
  transport_ = std::move(transport);
}

Status AdminOpening::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(deadline_);
  return Done{};
}

// Readiness is edge-triggered: further bytes of an incomplete preface cause another event.
void AdminOpening::on_ready(exec::Ready ready) {
  if (handshake_ != nullptr) return step_handshake(ready);
  std::array<char, http::kH2Preface.size()> bytes;
  const ssize_t received = net::peek(transport_->fd(), bytes.data(), bytes.size());
  if (received < 0 && errno == EAGAIN) return;
  if (received <= 0) return end();
  const std::string_view text(bytes.data(), static_cast<std::size_t>(received));
  const bool preface = http::kH2Preface.starts_with(text);
  if (preface && text.size() < http::kH2Preface.size()) return ready.hangup ? end() : void();
  pass_on(preface ? Protocol::h2 : Protocol::h1);
}

// Runs each step on the admin loop, which serves no requests of applications.
void AdminOpening::step_handshake(exec::Ready ready) {
  using End = metrics::ClientHandshake;
  handshake_->on_readiness(ready);
  const Result<bool> done = handshake_->handshake();
  if (!done) {
    owner_.count_handshake(done.fault().kind == FaultKind::budget ? End::rejected : End::failed);
    log::debug("admin", "TLS handshake of a client failed", {{"error", std::string_view(done.fault().detail)}});
    return end();
  }
  if (!*done) return;
  const net::SecurityInfo security = handshake_->security();
  owner_.count_handshake(security.resumed ? End::resumed : End::full);
  pass_on(security.alpn == "h2" ? Protocol::h2 : Protocol::h1);
}

void AdminOpening::pass_on(Protocol protocol) {
  if (stop_watching()) owner_.opened(*this, protocol, std::move(transport_), deadline_);
}

void AdminOpening::on_deadline() {
  exec::assume_on_loop();
  if (handshake_ != nullptr) owner_.count_handshake(metrics::ClientHandshake::timeout);
  end();
}

bool AdminOpening::stop_watching() {
  if (std::exchange(over_, true)) return false;
  timer_.disarm();
  loop_.unwatch(transport_->fd(), key_);
  return true;
}

void AdminOpening::end() {
  if (stop_watching()) owner_.ended(*this);
}

}  // namespace carpool::proxy
