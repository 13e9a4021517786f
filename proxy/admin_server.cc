#include "proxy/admin_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "proxy/house.h"
#include "proxy/net/bind.h"
#include "proxy/net/plain.h"

namespace carpool::proxy {

namespace {
constexpr exec::LoopId kAdminLoop = 254;  // no worker has it
constexpr std::size_t kMostSessions = 256;
constexpr Duration kRetryAfter = std::chrono::milliseconds(100);
constexpr mode_t kOwnerOnly = 0177;  // umask: the socket file is mode 0600 from its first moment
}  // namespace

AdminServer::AdminServer(House& house) : house_(house), view_(house) {}

AdminServer::~AdminServer() {
  if (thread_.joinable()) {
    loop_->stop();
    thread_.join();
  }
  bury();
  while (!sessions_.empty()) const std::unique_ptr<AdminSession> dies(&sessions_.pop_front());
  if (fd_ && address_.family() == AF_UNIX) net::remove_socket_file(address_);
}

Status AdminServer::open() {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(kAdminLoop);
  if (!loop) return loop.take_fault();
  loop_ = std::move(*loop);
  retry_ = std::make_unique<exec::Timer>(
      *loop_, [](void* self) { static_cast<AdminServer*>(self)->on_retry(); }, this);
  const std::string& text = house_.config().admin.address;
  rules_.unix_socket = text.starts_with("unix:");
  if (Status token = read_token(); !token) return token;
  const mode_t before = ::umask(rules_.unix_socket ? kOwnerOnly : 0022);
  Result<net::Bound> bound = net::bind_and_listen(text, 128);
  ::umask(before);
  if (!bound) return bound.take_fault();
  fd_ = std::move(bound->fd);
  address_ = bound->address;
  exec::assume_on_loop();  // its thread has not begun
  Result<exec::WatchKey> key = loop_->watch(fd_.get(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  return Done{};
}

Status AdminServer::read_token() {
  const std::string& path = house_.config().admin.token_file;
  const Result<net::Address> address = net::Address::parse(house_.config().admin.address);
  // Who can reach loopback or the socket file is inside already.
  if (path.empty() || rules_.unix_socket || (address && address->loopback())) return Done{};
  std::ifstream file(path);
  if (!std::getline(file, rules_.token) || rules_.token.empty()) {
    return Fault{FaultKind::malformed_request, Side::self, "admin.token_file " + path + ": no token in its first line"};
  }
  return Done{};
}

void AdminServer::start() {
  thread_ = std::thread([this] { loop_->run(); });
}

void AdminServer::on_ready(exec::Ready) {
  for (;;) {
    Fd client(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) retry_->arm(loop_->now() + kRetryAfter);  // no event comes for those who wait
      return;
    }
    if (open_ >= kMostSessions || !trusted(client.get())) continue;  // closed at once
    auto session = std::make_unique<AdminSession>(*loop_, *this, rules_, view_, net::make_plain(client.release()));
    if (!session->start()) continue;
    ++open_;
    sessions_.push_back(*session.release());  // owned by the list until bury()
  }
}

void AdminServer::on_retry() {
  exec::assume_on_loop();
  on_ready({});
}

// On a Unix socket: the same user, or root.
bool AdminServer::trusted(int fd) const {
  if (!rules_.unix_socket) return true;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

void AdminServer::ended(AdminSession& session) {
  session.unlink();
  graves_.push_back(session);
  --open_;
  if (!undertaker_.linked()) loop_->defer(undertaker_);
}

void AdminServer::bury() {
  while (!graves_.empty()) const std::unique_ptr<AdminSession> dies(&graves_.pop_front());
}

}  // namespace carpool::proxy
