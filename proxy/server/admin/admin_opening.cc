#include "proxy/server/admin/admin_opening.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "proxy/http/h2/types.h"

namespace carpool::proxy {

AdminOpening::AdminOpening(exec::Loop& loop, Owner& owner, std::unique_ptr<net::Transport> transport)
    : loop_(loop),
      owner_(owner),
      transport_(std::move(transport)),
      timer_(exec::Timer::bind<&AdminOpening::on_deadline>(loop, *this)),
      deadline_(loop.now() + kAdminTimeout) {}

Status AdminOpening::start() {
  Result<exec::WatchKey> key = loop_.watch(transport_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  timer_.arm(deadline_);
  return Done{};
}

// More bytes of a preface that is incomplete are a new edge of readiness.
void AdminOpening::on_ready(exec::Ready ready) {
  std::array<char, http::kH2Preface.size()> bytes;
  const ssize_t got = ::recv(transport_->fd(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end();
  const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
  const bool preface = http::kH2Preface.starts_with(text);
  if (preface && text.size() < http::kH2Preface.size()) return ready.hangup ? end() : void();
  if (!stop_watching()) return;
  owner_.opened(*this, preface ? Protocol::h2 : Protocol::h1, std::move(transport_), deadline_);
}

void AdminOpening::on_deadline() {
  exec::assume_on_loop();
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
