#include "proxy/commands/demo/demo_origin.h"

#include <utility>

#include "exec/posted_function.h"
#include "proxy/commands/demo/start_thread.h"
#include "proxy/net/plain_transport.h"

namespace carpool::proxy {
namespace {

constexpr LoopId kLoop = 254;  // distinct from the workers' ids, which begin at 0
constexpr int kOriginBacklog = 128, kOriginAtOnce = 64;

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
  for (net::Acceptor* acceptor : {&origin->plain_, &origin->secure_, &origin->h2_}) {
    if (Status opened = origin->open(*acceptor); !opened) return opened.take_fault();
  }
  Result<std::thread> thread = start_thread("the demo's origin", [made = origin.get()] { made->loop_->run(); });
  if (!thread) return thread.take_fault();
  origin->thread_ = std::move(*thread);
  return origin;
}

DemoOrigin::DemoOrigin(const Settings& settings, std::unique_ptr<exec::UvLoop> loop,
                       std::unique_ptr<tls::ServerContext> tls, std::unique_ptr<tls::ServerContext> h2,
                       TemporaryFile certificates)
    : settings_(settings),
      loop_(std::move(loop)),
      tls_(std::move(tls)),
      h2_tls_(std::move(h2)),
      certificates_(std::move(certificates)),
      plain_(*loop_, *this, kOriginAtOnce),
      secure_(*loop_, *this, kOriginAtOnce),
      h2_(*loop_, *this, kOriginAtOnce),
      ended_connections_(*loop_) {}

DemoOrigin::~DemoOrigin() {
  if (thread_.joinable()) {
    loop_->stop();
    thread_.join();
  }
  loop_->enter();
  for (net::Acceptor* acceptor : {&plain_, &secure_, &h2_}) acceptor->stop();
  while (!connections_.empty()) connections_.front().end();
  ended_connections_.destroy_all();
  sessions_.clear();
}

// Must be called before the loop runs.
Status DemoOrigin::open(net::Acceptor& acceptor) {
  loop_->enter();
  Result<net::Bound> bound = net::bind_and_listen("127.0.0.1:0", kOriginBacklog);
  if (!bound) return Fault{bound.fault().kind, Side::self, "the demo's origin: " + bound.fault().detail};
  return acceptor.start(std::move(*bound));
}

void DemoOrigin::on_client(net::Acceptor& acceptor, Fd client, const net::Address&) {
  if (connection_count_ + sessions_.size() >= settings_.max_connections) return;
  ++accepted_;
  static_cast<void>(add_client(acceptor, std::move(client)));
}

// Destroys a session that fails to start.
Status DemoOrigin::add_client(const net::Acceptor& acceptor, Fd client) {
  if (&acceptor == &h2_) {
    DemoH2Session::Owner& owner = *this;
    auto& made =
        sessions_.emplace_back(*loop_, owner, h2_tls_->accept(std::move(client)), accepted_, settings_.idle_timeout);
    Status started = made.start();
    if (!started) sessions_.pop_back();
    return started;
  }
  DemoH1Session::Owner& owner = *this;
  const Duration idle_timeout = settings_.idle_timeout;
  if (&acceptor == &secure_) {
    return add(
        std::make_unique<DemoH1Session>(*loop_, owner, tls_->accept(std::move(client)), accepted_, idle_timeout));
  }
  return add(
      std::make_unique<DemoH1Session>(*loop_, owner, net::make_accepted(std::move(client)), accepted_, idle_timeout));
}

Status DemoOrigin::add(std::unique_ptr<DemoH1Session> connection) {
  Status started = connection->start();
  if (!started) return started;
  connections_.push_back(*connection.release());
  ++connection_count_;
  return started;
}

void DemoOrigin::kill() {
  exec::send(*loop_, [this]() LOOP_ONLY { stop_serving(); });
}

void DemoOrigin::revive() {
  exec::send(*loop_, [this]() LOOP_ONLY { serve_again(); });
}

void DemoOrigin::stop_serving() {
  if (std::exchange(killed_, true)) return;
  for (net::Acceptor* acceptor : {&plain_, &secure_, &h2_}) acceptor->stop();
  while (!connections_.empty()) connections_.front().end();
  sessions_.clear();
}

// A port that another program has taken meanwhile stays closed.
void DemoOrigin::serve_again() {
  if (!std::exchange(killed_, false)) return;
  for (net::Acceptor* acceptor : {&plain_, &secure_, &h2_}) {
    Result<net::Bound> bound = net::bind_and_listen(acceptor->address().text(), kOriginBacklog);
    if (bound) static_cast<void>(acceptor->start(std::move(*bound)));
  }
}

void DemoOrigin::on_connection_end(DemoH1Session& connection) {
  connection.unlink();
  --connection_count_;
  ended_connections_.destroy_later(std::unique_ptr<DemoH1Session>(&connection));
}

void DemoOrigin::on_session_end(DemoH2Session& session) {
  sessions_.remove_if([&](const DemoH2Session& other) { return &other == &session; });
}

}  // namespace carpool::proxy
