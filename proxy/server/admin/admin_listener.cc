#include "proxy/server/admin/admin_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/contents.h"
#include "proxy/net/peer_credentials.h"

namespace carpool::proxy {

namespace {
constexpr Duration kRetryAfter = std::chrono::milliseconds(100);
constexpr int kAtOnce = 8;
constexpr std::size_t kLongestToken = std::size_t{64} * 1024;  // size limit of the file
constexpr mode_t kOwnerOnly = 0177;                            // umask: the socket file has mode 0600 from its creation
}  // namespace

AdminListener::AdminListener(exec::Loop& loop, Owner& owner, bool metrics_only)
    : loop_(loop), owner_(owner), retry_(exec::Timer::bind<&AdminListener::on_retry>(loop, *this)) {
  rules_.metrics_only = metrics_only;
}

AdminListener::~AdminListener() {
  if (fd_ && address_.family() == AF_UNIX) net::remove_socket_file(address_);
}

Status AdminListener::open(const std::string& address, std::optional<net::Bound> inherited) {
  rules_.unix_socket = address.starts_with("unix:");
  if (!inherited) {
    const mode_t before = ::umask(rules_.unix_socket ? kOwnerOnly : 0022);
    Result<net::Bound> bound = net::bind_and_listen(address, 128);
    ::umask(before);
    if (!bound) return bound.take_fault();
    inherited = std::move(*bound);
  }
  fd_ = std::move(inherited->fd);
  address_ = inherited->address;
  exec::assume_on_loop();  // its thread has not started
  Result<exec::WatchKey> key = loop_.watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  return Done{};
}

void AdminListener::stop_accepting() {
  if (!fd_) return;
  retry_.disarm();
  more_.unlink();
  loop_.unwatch(fd_.get(), key_);
  fd_.reset();
}

Fd AdminListener::copy() const {
  return Fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
}

Status AdminListener::read_token(const std::string& path) {
  // Clients on loopback or with access to the socket file are local already; nothing on the metrics listener needs a
  // token.
  if (rules_.metrics_only || rules_.unix_socket || address_.loopback()) return Done{};
  const Result<std::string> text = path.empty() ? Result<std::string>(std::string()) : contents(path, kLongestToken);
  std::string token = text ? text->substr(0, text->find('\n')) : std::string();
  if (!path.empty() && token.empty()) {
    return Fault{FaultKind::malformed_request, Side::self, "admin.token_file " + path + ": no token in its first line"};
  }
  rules_.token = std::move(token);
  return Done{};
}

void AdminListener::on_ready(exec::Ready) {
  accept_some();
}

// Accepts a few clients per turn, so that their requests are read before a full session table ends them.
void AdminListener::accept_some() {
  for (int i = 0; i < kAtOnce; ++i) {
    Fd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) retry_.arm(loop_.now() + kRetryAfter);
      return;
    }
    if (trusted(client.get())) owner_.on_accept(*this, std::move(client));  // otherwise closed at once
  }
  if (!more_.linked()) loop_.defer(more_);
}

void AdminListener::on_retry() {
  exec::assume_on_loop();
  accept_some();
}

bool AdminListener::trusted(int fd) const {
  return !rules_.unix_socket || rules_.metrics_only || same_user(peer_of(fd));
}

}  // namespace carpool::proxy
