#include "proxy/net/acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace carpool::proxy::net {

Acceptor::Acceptor(exec::Loop& loop, Owner& owner, int most_per_turn)
    : loop_(loop),
      owner_(owner),
      most_per_turn_(most_per_turn),
      pause_(exec::Timer::bind<&Acceptor::on_pause_over>(loop, *this)) {}

Acceptor::~Acceptor() {
  exec::assume_on_loop();
  stop();
}

Status Acceptor::start(Bound bound) {
  adopt(std::move(bound));
  return start();
}

Status Acceptor::open_for_owner(const std::string& address, int backlog, std::optional<Bound> inherited) {
  exec::assume_on_loop();  // its thread has not started
  if (inherited) return start(std::move(*inherited));
  Result<Bound> bound = bind_for_owner(address, backlog);
  return bound ? start(std::move(*bound)) : Status(bound.take_fault());
}

void Acceptor::adopt(Bound bound) {
  fd_ = std::move(bound.fd);
  address_ = bound.address;
  bound.file.keep();  // close() removes it; stop() leaves it to those who have a copy
  used_by_ = {bound.inherited, false};
}

Status Acceptor::start() {
  Result<exec::WatchKey> key = loop_.watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  started_ = true;
  return Done{};
}

void Acceptor::resume() {
  accept_some();
}

void Acceptor::accept_waiting(int most) {
  if (!started_ || used_by_ != std::array{false, false}) return;
  for (int i = 0; i < most && fd_ && accept_one(); ++i) {
  }
}

void Acceptor::stop() {
  if (!fd_) return;
  exec::Deferred::unlink();
  pause_.disarm();
  loop_.unwatch(fd_.get(), key_);
  fd_.reset();
  started_ = false;
}

void Acceptor::close() {
  if (fd_ && address_.family() == AF_UNIX && used_by_ == std::array{false, false}) remove_socket_file(address_);
  stop();
}

Fd Acceptor::copy() {
  used_by_[static_cast<std::size_t>(SocketUser::successor)] = true;
  return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
}

void Acceptor::on_left(SocketUser who) {
  used_by_[static_cast<std::size_t>(who)] = false;
}

void Acceptor::on_pause_over() {
  exec::assume_on_loop();
  accept_some();
}

void Acceptor::accept_some() {
  if (pause_.armed()) return;  // clients that arrive meanwhile do not shorten a pause
  for (int i = 0; i < most_per_turn_; ++i) {
    if (!fd_ || !accept_one()) return;
    if (i == 0 && fd_ && !is_one_waiting()) return;
  }
  if (fd_ && !exec::Deferred::linked()) loop_.defer(*this);
}

// Clients mostly come one at a time, and an accept4() on an empty queue costs as much as eight polls, because the
// system makes a socket first. A client that comes after this answer causes an event.
bool Acceptor::is_one_waiting() const {
  pollfd queue{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&queue, 1, 0) != 0;  // an error is left to accept4()
}

// Returns false if there is nothing more to accept in this turn.
bool Acceptor::accept_one() {
  const Gate gate = owner_.gate();
  if (gate != Gate::open) return gate == Gate::pause && pause();
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  Fd client(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (client) {
    owner_.on_client(*this, std::move(client), Address(reinterpret_cast<sockaddr*>(&peer), length));
    return true;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  if (errno == EINTR || errno == ECONNABORTED) return true;
  owner_.on_accept_failed(errno);
  return pause();
}

bool Acceptor::pause() {
  if (fd_) pause_.arm(loop_.now() + kPause);
  return false;
}

}  // namespace carpool::proxy::net
