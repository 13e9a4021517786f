#include "proxy/downstream/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "exec/posted_function.h"
#include "proxy/downstream/client_acceptor.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/net/bind.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kMostVersions = 1000;  // of its settings
constexpr Duration kRetryAfter = std::chrono::milliseconds(100);
}  // namespace

Listener::Listener(const config::Listen& settings, Parts parts)
    : parts_(std::move(parts)), retry_(exec::Timer::bind<&Listener::on_retry>(loop(), *this)) {
  change(settings);
}

Listener::~Listener() = default;

exec::Loop& Listener::loop() const {
  return parts_.acceptors.front()->loop();
}

bool Listener::change(const config::Listen& settings) {
  auto known = std::find_if(versions_.begin(), versions_.end(), [&](const auto& v) { return *v == settings; });
  if (known == versions_.end()) {
    if (versions_.size() >= kMostVersions) return false;
    known = versions_.insert(versions_.end(), std::make_unique<const config::Listen>(settings));
  }
  point_.set(**known);
  return true;
}

Status Listener::open() {
  Result<net::Bound> bound = net::bind_and_listen(settings().address, kListenBacklog);
  if (!bound) return bound.take_fault();
  adopt_socket(std::move(*bound));
  return Done{};
}

void Listener::adopt_socket(net::Bound bound) {
  fd_ = std::move(bound.fd);
  point_.bind(bound.address);
}

Status Listener::start() {
  Result<exec::WatchKey> key = loop().watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  return Done{};
}

void Listener::close() {
  if (fd_ && address().family() == AF_UNIX) net::remove_socket_file(address());
  stop_accepting();
}

void Listener::stop_accepting() {
  if (!fd_) return;
  exec::Deferred::unlink();
  retry_.disarm();
  loop().unwatch(fd_.get(), key_);
  fd_.reset();
}

Fd Listener::copy() const {
  return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
}

void Listener::on_ready(exec::Ready) {
  accept_some();
}
void Listener::run() {
  accept_some();
}
void Listener::arrive() {
  in_the_mail_.store(false, std::memory_order_release);
  if (fd_) accept_some();
}

void Listener::accept_some() {
  if (retry_.armed()) return;  // clients that arrive meanwhile do not shorten a pause
  const bool name_peers = parts_.stats->wants_peers();
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (clients_.load(std::memory_order_relaxed) >= settings().max_connections) {
      // Clients wait in the kernel's queue until another one closes. seq_cst pairs with on_client_closed(): either it
      // sees `full_`, or the second check sees its decrement.
      full_.store(true, std::memory_order_seq_cst);
      if (clients_.load(std::memory_order_seq_cst) >= settings().max_connections) return;
      full_.store(false, std::memory_order_seq_cst);
    }
    if (!parts_.overload->may_accept()) {
      parts_.stats->note_accept_pause();
      return pause();
    }
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    const int fd = ::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      const bool no_descriptor = errno == EMFILE || errno == ENFILE;
      parts_.stats->note_accept_failure(errno);
      return no_descriptor ? pause() : retry_.arm(loop().now() + kRetryAfter);
    }
    dispatch(fd, name_peers ? net::Address(reinterpret_cast<sockaddr*>(&peer), length).text() : std::string());
  }
  if (!exec::Deferred::linked()) loop().defer(*this);
}

// Called when the system has no descriptor left: an idle upstream connection is closed, and accepting resumes after a
// pause. Meanwhile new clients wait in the kernel's queue.
void Listener::pause() {
  const Instant now = loop().now();
  free_a_descriptor(*parts_.pools, now);
  retry_.arm(now + kRetryAfter);
}

void Listener::dispatch(int fd, std::string peer) {
  clients_.fetch_add(1, std::memory_order_relaxed);
  ClientAcceptor& to = *parts_.acceptors[next_];
  next_ = (next_ + 1) % parts_.acceptors.size();
  if (&to == parts_.acceptors.front()) return to.accept(*this, fd, std::move(peer));
  exec::send(to.loop(), [this, &to, client = Fd(fd), name = std::move(peer)]()
                            LOOP_ONLY mutable { to.accept(*this, client.release(), std::move(name)); });
}

void Listener::on_retry() {
  exec::assume_on_loop();
  if (fd_) accept_some();
}

void Listener::on_client_closed() {
  clients_.fetch_sub(1, std::memory_order_seq_cst);
  if (!full_.exchange(false, std::memory_order_seq_cst)) return;
  // One message at a time: clients that close while it is posted are seen when it arrives.
  if (!in_the_mail_.exchange(true, std::memory_order_acq_rel)) loop().post(*this);
}

}  // namespace carpool::proxy
