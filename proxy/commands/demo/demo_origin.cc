#include "proxy/commands/demo/demo_origin.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proxy/net/plain_transport.h"

namespace carpool::proxy {
namespace {

constexpr exec::LoopId kLoop = 254;  // distinct from the workers' ids, which count from 0
constexpr int kBacklog = 128;

Fault cannot(const std::string& what) {
  return {FaultKind::unroutable, Side::self,
          "the demo's origin: " + what + ": " + std::generic_category().message(errno)};
}

}  // namespace

Result<std::unique_ptr<DemoOrigin>> DemoOrigin::start(const Settings& settings) {
  auto loop = exec::UvLoop::make(kLoop);
  if (!loop) return loop.take_fault();
  tls::ServerSettings identity;
  identity.names = {kTlsName, kPlainName, "localhost", "127.0.0.1"};
  auto tls = tls::ServerContext::make(identity);
  if (!tls) return tls.take_fault();
  identity.names = {kH2Name, "localhost", "127.0.0.1"};
  identity.alpn = {"h2"};
  auto h2 = tls::ServerContext::make(identity);
  if (!h2) return h2.take_fault();
  auto certificates = TemporaryFile::make("carpool-demo", (*tls)->certificate_pem() + (*h2)->certificate_pem());
  if (!certificates) return certificates.take_fault();
  auto origin = std::make_unique<DemoOrigin>(settings, std::move(*loop), std::move(*tls), std::move(*h2),
                                             std::move(*certificates));
  for (Door* door : {&origin->plain_, &origin->secure_, &origin->h2_}) {
    if (Status opened = origin->open(*door); !opened) return opened.take_fault();
  }
  origin->thread_ = std::thread([made = origin.get()] { made->loop_->run(); });
  return origin;
}

DemoOrigin::DemoOrigin(const Settings& settings, std::unique_ptr<exec::UvLoop> loop,
                       std::unique_ptr<tls::ServerContext> tls, std::unique_ptr<tls::ServerContext> h2,
                       TemporaryFile certificates)
    : settings_(settings),
      loop_(std::move(loop)),
      tls_(std::move(tls)),
      h2_tls_(std::move(h2)),
      certificates_(std::move(certificates)) {}

DemoOrigin::~DemoOrigin() {
  if (thread_.joinable()) {
    loop_->stop();
    thread_.join();
  }
  loop_->enter();
  for (Door* door : {&plain_, &secure_, &h2_}) {
    if (door->fd) loop_->unwatch(door->fd.get(), door->key);
  }
  connections_.clear();
  sessions_.clear();
}

// Called before the loop runs.
Status DemoOrigin::open(Door& door) {
  loop_->enter();
  const net::Address any_port = *net::Address::literal("127.0.0.1", 0);
  door.fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!door.fd) return cannot("socket");
  if (::bind(door.fd.get(), any_port.get(), any_port.length()) != 0) return cannot("bind");
  if (::listen(door.fd.get(), kBacklog) != 0) return cannot("listen");
  door.address = net::Address::local_of(door.fd.get());
  Result<exec::WatchKey> key = loop_->watch(door.fd.get(), door);
  if (!key) return key.take_fault();
  door.key = *key;
  return Done{};
}

void DemoOrigin::accept_all(Door& door) {
  for (;;) {
    const int fd = ::accept4(door.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      adopt(door, fd);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;  // out of descriptors: the next client causes another event
    }
  }
}

void DemoOrigin::adopt(Door& door, int fd) {
  net::prepare_socket(fd);
  Fd owned(fd);
  if (connections_.size() + sessions_.size() >= settings_.max_connections) return;
  ++accepted_;
  static_cast<void>(welcome(door, owned.release()));
}

// A session that fails to start is destroyed.
Status DemoOrigin::welcome(Door& door, int fd) {
  if (&door == &h2_) {
    DemoH2Session::Owner& owner = *this;
    auto& made = sessions_.emplace_back(*loop_, owner, h2_tls_->accept(fd), accepted_, settings_.idle_timeout);
    Status started = made.start();
    if (!started) sessions_.pop_back();
    return started;
  }
  DemoH1Session::Owner& owner = *this;
  auto& made = &door == &secure_
                   ? connections_.emplace_back(*loop_, owner, tls_->accept(fd), accepted_, settings_.idle_timeout)
                   : connections_.emplace_back(*loop_, owner, net::make_plain(fd), accepted_, settings_.idle_timeout);
  Status started = made.start();
  if (!started) connections_.pop_back();
  return started;
}

void DemoOrigin::on_connection_end(DemoH1Session& connection) {
  connections_.remove_if([&](const DemoH1Session& other) { return &other == &connection; });
}

void DemoOrigin::on_session_end(DemoH2Session& session) {
  sessions_.remove_if([&](const DemoH2Session& other) { return &other == &session; });
}

}  // namespace carpool::proxy
